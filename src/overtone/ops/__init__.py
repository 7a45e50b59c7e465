"""Operations on tensors that know nothing of models: resizing kernels, padding, spectra."""
