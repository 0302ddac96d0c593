// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/dnnl_engine.h"

#include <omp.h>

#include <list>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace holdfast::cpu {
namespace {

constexpr size_t kDirect = ~size_t{0};  // used where it lies

dnnl::stream& ThreadStream() {
  thread_local dnnl::stream stream(DnnlEngine());
  return stream;
}

// Most recently used first. A network of a hundred layers fits.
struct DnnlCache {
  static constexpr size_t kCapacity = 512;
  using Entry = std::pair<DnnlKey, std::unique_ptr<DnnlOp>>;
  std::list<Entry> entries;
  absl::flat_hash_map<DnnlKey, std::list<Entry>::iterator> by_key;
};

}  // namespace

const dnnl::engine& DnnlEngine() {
  // Never destroyed: kernels of other threads may still run at exit.
  static const dnnl::engine* const engine =
      new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

void UseDnnlThreads(const KernelContext& context, int64_t multiplications) {
  constexpr int64_t kFew = int64_t{1} << 19;  // some 5 microseconds
  const int threads = multiplications <= kFew ? 1 : context.num_threads;
  if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
}

dnnl::primitive_attr UserScratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

DnnlOp::DnnlOp(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad,
               std::vector<Operand> operands)
    : primitive_(std::move(primitive)) {
  const dnnl::engine& engine = DnnlEngine();
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    dnnl::memory memory(operand.wanted, engine, DNNL_MEMORY_NONE);
    args_.emplace(operand.arg, memory);
    if (operand.plain == operand.wanted) {
      memories_.push_back(std::move(memory));
      offsets_.push_back(kDirect);
      continue;
    }
    offsets_.push_back(Reserve(operand.wanted.get_size()));
    dnnl::memory plain(operand.plain, engine, DNNL_MEMORY_NONE);
    const dnnl::memory& from = operand.output ? memory : plain;
    const dnnl::memory& to = operand.output ? plain : memory;
    const dnnl::reorder::primitive_desc pd(engine, from.get_desc(), engine,
                                           to.get_desc(), UserScratchpad());
    Reorder reorder{i, dnnl::reorder(pd), {}, plain, memory};
    reorder.args.emplace(DNNL_ARG_FROM, from);
    reorder.args.emplace(DNNL_ARG_TO, to);
    AddScratchpad(pd.scratchpad_desc(), &reorder.args);
    memories_.push_back(std::move(memory));
    (operand.output ? after_ : before_).push_back(std::move(reorder));
  }
  AddScratchpad(scratchpad, &args_);
}

size_t DnnlOp::Reserve(size_t bytes) {
  const size_t offset = scratch_bytes_;
  scratch_bytes_ += (bytes + 63) / 64 * 64;
  return offset;
}

void DnnlOp::AddScratchpad(const dnnl::memory::desc& desc, Args* args) {
  if (desc.get_size() == 0) return;
  dnnl::memory memory(desc, DnnlEngine(), DNNL_MEMORY_NONE);
  args->emplace(DNNL_ARG_SCRATCHPAD, memory);
  scratchpads_.push_back({Reserve(desc.get_size()), std::move(memory)});
}

absl::Status DnnlOp::Run(KernelContext& context, absl::Span<void* const> data) {
  char* scratch = nullptr;
  if (scratch_bytes_ > 0) {
    scratch = static_cast<char*>(context.Scratch(scratch_bytes_));
    if (scratch == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no ", scratch_bytes_, " bytes of scratch memory for oneDNN"));
    }
  }
  try {
    dnnl::stream& stream = ThreadStream();
    for (size_t i = 0; i < memories_.size(); ++i) {
      memories_[i].set_data_handle(
          offsets_[i] == kDirect ? data[i] : scratch + offsets_[i]);
    }
    for (Scratchpad& pad : scratchpads_) {
      pad.memory.set_data_handle(scratch + pad.offset);
    }
    for (Reorder& reorder : before_) {
      reorder.plain.set_data_handle(data[reorder.operand]);
      reorder.primitive.execute(stream, reorder.args);
    }
    primitive_.execute(stream, args_);
    for (Reorder& reorder : after_) {
      reorder.plain.set_data_handle(data[reorder.operand]);
      reorder.primitive.execute(stream, reorder.args);
    }
    stream.wait();
  } catch (const dnnl::error& error) {
    return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
  }
  return absl::OkStatus();
}

absl::StatusOr<DnnlOp*> CachedDnnlOp(
    const DnnlKey& key, absl::FunctionRef<std::unique_ptr<DnnlOp>()> make) {
  thread_local DnnlCache cache;
  auto found = cache.by_key.find(key);
  if (found != cache.by_key.end()) {
    cache.entries.splice(cache.entries.begin(), cache.entries, found->second);
    return found->second->second.get();
  }
  std::unique_ptr<DnnlOp> op;
  try {
    op = make();
  } catch (const dnnl::error& error) {
    return absl::UnimplementedError(absl::StrCat("oneDNN: ", error.what()));
  }
  cache.entries.emplace_front(key, std::move(op));
  cache.by_key[key] = cache.entries.begin();
  if (cache.entries.size() > DnnlCache::kCapacity) {
    cache.by_key.erase(cache.entries.back().first);
    cache.entries.pop_back();
  }
  return cache.entries.front().second.get();
}

}  // namespace holdfast::cpu
