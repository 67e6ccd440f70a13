#include "libs/worker/engines/torch_setup.h"
#include "libs/worker/process/worker_main.h"

int main(int argc, char** argv) {
  return tokenrouter::WorkerMain(tokenrouter::Role::kSmall, argc, argv,
                                 tokenrouter::MakeTorchEngine);
}
