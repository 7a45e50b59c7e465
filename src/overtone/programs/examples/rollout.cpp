// Rolls an exported model out by AOTInductor and libtorch, without Python.
//
//   cmake -B build -DCMAKE_PREFIX_PATH="$(python -c 'import torch; print(torch.utils.cmake_prefix_path)')"
//   cmake --build build
//   build/rollout @FILE@ window.bin frames.bin 10 [shift along each axis]
//
// Files hold float32 in the order of C, without a header: one window (@CONTEXT@ frames, @FIELDS@ fields,
// @SPACE@ cells) and as many frames as there are steps.
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/torch.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: rollout PROGRAM window.bin frames.bin STEPS [SHIFT...]\n";
    return 2;
  }
  const c10::InferenceMode guard;
  torch::inductor::AOTIModelPackageLoader program(argv[1]);

  auto window = torch::empty({1, @CONTEXT@, @FIELDS@, @CELLS@});
  const auto bytes = static_cast<std::streamsize>(window.numel() * sizeof(float));
  if (!std::ifstream(argv[2], std::ios::binary).read(static_cast<char*>(window.data_ptr()), bytes)) {
    std::cerr << argv[2] << " holds less than a window of " << bytes << " bytes\n";
    return 1;
  }
  auto shift = torch::zeros({@AXES@}, torch::kInt64);
  for (int axis = 0; axis < @AXES@ && axis + 5 < argc; ++axis) shift[axis] = std::atoi(argv[axis + 5]);

  std::ofstream frames(argv[3], std::ios::binary);
  for (int step = 0; step < std::atoi(argv[4]); ++step) {
    std::vector<at::Tensor> inputs{window};
    if (@TAKES_SHIFT@) inputs.push_back(shift);
    const auto frame = program.run(inputs)[0].contiguous();  // (1, @FIELDS@, @SPACE@)
    frames.write(static_cast<const char*>(frame.data_ptr()), frame.numel() * sizeof(float));
    window = torch::cat({window.slice(1, 1), frame.unsqueeze(1)}, 1);
  }
  return frames ? 0 : 1;
}
