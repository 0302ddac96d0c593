// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target over the files of its corpus, and over damaged copies of
// them: what every build can do, without libFuzzer. Arguments: the files.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);

namespace {

constexpr int kDamaged = 2000;  // copies of each file

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
}

void Damage(std::mt19937_64* random, std::string* input) {
  for (uint64_t i = (*random)() % 4; i > 0 && !input->empty(); --i) {
    (*input)[(*random)() % input->size()] = static_cast<char>((*random)());
  }
  if ((*random)() % 4 == 0) input->resize((*random)() % (input->size() + 1));
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(file)),
                            std::istreambuf_iterator<char>());
    Run(input);
    std::mt19937_64 random(1);
    for (int k = 0; k < kDamaged; ++k) {
      std::string damaged = input;
      Damage(&random, &damaged);
      Run(damaged);
    }
  }
  std::printf("%d files\n", argc - 1);
  return argc > 1 ? 0 : 1;  // a test without a corpus tests nothing
}
