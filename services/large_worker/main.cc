#include "libs/worker_engine/torch_setup.h"
#include "libs/worker_service/worker_main.h"

int main(int argc, char** argv) {
  return tokenrouter::WorkerMain(tokenrouter::Role::kLarge, argc, argv,
                                 tokenrouter::MakeTorchEngine);
}
