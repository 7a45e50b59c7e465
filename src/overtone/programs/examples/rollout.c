/* Rolls an exported model out by the C interface of ONNX Runtime, without Python and torch.
 *
 *   cc rollout.c -I ORT/include -L ORT/lib -lonnxruntime -Wl,-rpath,ORT/lib -o rollout
 *   ./rollout @FILE@ window.bin frames.bin 10 [shift along each axis]
 *
 * ORT is a release of ONNX Runtime, unpacked. Files hold float32 in the order of C, without a header:
 * one window (@CONTEXT@ frames, @FIELDS@ fields, @SPACE@ cells) and as many frames as there are steps.
 */
#include <onnxruntime_c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT = @CONTEXT@, FIELDS = @FIELDS@, CELLS = @NUM_CELLS@, AXES = @AXES@, FRAME = FIELDS * CELLS };

static const OrtApi *ort;

static void check(OrtStatus *status) {
  if (status == NULL) return;
  fprintf(stderr, "%s\n", ort->GetErrorMessage(status));
  exit(1);
}

static void *checked(void *found, const char *what) {
  if (found != NULL) return found;
  fprintf(stderr, "%s: failed\n", what);
  exit(1);
}

int main(int argc, char **argv) {
  if (argc < 5) {
    fprintf(stderr, "usage: rollout PROGRAM window.bin frames.bin STEPS [SHIFT...]\n");
    return 2;
  }
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  checked((void *)ort, "a library of this version");
  OrtEnv *env;
  OrtSessionOptions *options;
  OrtSession *session;
  OrtMemoryInfo *memory;
  check(ort->CreateEnv(ORT_LOGGING_LEVEL_WARNING, "rollout", &env));
  check(ort->CreateSessionOptions(&options));
  check(ort->CreateSession(env, argv[1], options, &session));
  check(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));

  float *window = checked(malloc(sizeof(float) * CONTEXT * FRAME), "malloc");
  FILE *in = checked(fopen(argv[2], "rb"), argv[2]);
  if (fread(window, sizeof(float), (size_t)CONTEXT * FRAME, in) != (size_t)CONTEXT * FRAME) {
    fprintf(stderr, "%s holds less than a window\n", argv[2]);
    return 1;
  }
  fclose(in);
  FILE *out = checked(fopen(argv[3], "wb"), argv[3]);

  int64_t window_shape[] = {1, CONTEXT, FIELDS, @CELLS@}, shift_shape[] = {AXES}, shift[AXES] = {0};
  for (int axis = 0; axis < AXES && axis + 5 < argc; ++axis) shift[axis] = atoll(argv[axis + 5]);
  /* Both tensors lie over our own memory: what is written there is what the next step reads. */
  OrtValue *inputs[2] = {NULL, NULL};
  check(ort->CreateTensorWithDataAsOrtValue(memory, window, sizeof(float) * CONTEXT * FRAME, window_shape,
                                            3 + AXES, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &inputs[0]));
  check(ort->CreateTensorWithDataAsOrtValue(memory, shift, sizeof(shift), shift_shape, 1,
                                            ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, &inputs[1]));
  const char *input_names[] = {"window", "shift"}, *output_names[] = {"frame"};

  for (int step = 0; step < atoi(argv[4]); ++step) {
    OrtValue *output = NULL;
    float *frame;
    check(ort->Run(session, NULL, input_names, (const OrtValue *const *)inputs, @NUM_INPUTS@, output_names, 1,
                   &output));
    check(ort->GetTensorMutableData(output, (void **)&frame)); /* (1, FIELDS, @SPACE@) */
    fwrite(frame, sizeof(float), FRAME, out);
    memmove(window, window + FRAME, sizeof(float) * (CONTEXT - 1) * FRAME);
    memcpy(window + (size_t)(CONTEXT - 1) * FRAME, frame, sizeof(float) * FRAME);
    ort->ReleaseValue(output);
  }
  ort->ReleaseValue(inputs[0]);
  ort->ReleaseValue(inputs[1]);
  ort->ReleaseMemoryInfo(memory);
  ort->ReleaseSession(session);
  ort->ReleaseSessionOptions(options);
  ort->ReleaseEnv(env);
  free(window);
  return fclose(out) == 0 ? 0 : 1;
}
