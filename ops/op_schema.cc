// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/op_schema.h"

#include <cstdio>
#include <cstdlib>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ops/op_fingerprint.h"
#include "ops/op_id.h"

namespace holdfast {

// The rules, each in ops/infer_<family>.cc; several rows may name one.
#define OP(name, signature, infer, flags, since, doc) HOLDFAST_INFER(infer);
#include "ops/ops.def"
#undef OP

namespace {

struct Row {
  OpId id;
  absl::string_view name;
  absl::string_view signature;
  InferFn infer;
  uint32_t flags;
  int since;
  absl::string_view doc;
};

constexpr Row kRows[] = {
#define OP(name, signature, infer, flags, since, doc) \
  {OpId::name, #name, signature, &infer, flags, since, doc},
#include "ops/ops.def"
#undef OP
};

struct Table {
  std::vector<OpSchema> ops;
  absl::flat_hash_map<absl::string_view, const OpSchema*> by_name;
  uint64_t fingerprint = 0;
};

// The table is part of this program, so a bad row is a bug in the program.
[[noreturn]] void Die(absl::string_view name, absl::string_view why) {
  std::fprintf(stderr, "ops.def: row %.*s is malformed: %.*s\n",
               static_cast<int>(name.size()), name.data(),
               static_cast<int>(why.size()), why.data());
  std::abort();
}

const Table* BuildTable() {
  Table* table = new Table;
  table->ops.reserve(kNumOps);
  for (const Row& row : kRows) {
    absl::StatusOr<OpSchema> schema =
        ParseOpRow(row.name, row.signature, row.flags);
    if (!schema.ok()) Die(row.name, schema.status().message());
    if (row.since < 1) Die(row.name, "`since` counts from 1");
    if (row.doc.empty()) Die(row.name, "it has no doc");
    schema->id = row.id;
    schema->since = row.since;
    schema->doc = std::string(row.doc);
    schema->infer = row.infer;
    table->ops.push_back(*std::move(schema));
  }
  for (const OpSchema& op : table->ops) {
    if (!table->by_name.emplace(op.name, &op).second) {
      Die(op.name, "the name is taken");
    }
  }
  table->fingerprint = FingerprintOf(table->ops);
  return table;
}

const Table& GetTable() {
  static const Table* const table = BuildTable();
  return *table;
}

// Parses the table when the program starts, so that a bad row never waits for
// the first op to be noticed.
[[maybe_unused]] const Table& table_at_start_up = GetTable();

bool Matches(const OpParam& param, const AttrValue& value) {
  switch (param.kind) {
    case ParamKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case ParamKind::kInts:
      if (const Dims* list = std::get_if<Dims>(&value)) {
        if (param.repeat == 0) return list->size() <= kMaxListLength;
        return list->size() == 1 ||
               static_cast<int>(list->size()) == param.repeat;
      }
      return std::holds_alternative<int64_t>(value);
    case ParamKind::kBool:
      return std::holds_alternative<bool>(value);
    case ParamKind::kFloat:
    case ParamKind::kScalar:
    case ParamKind::kOperand:
    case ParamKind::kOptOperand:
      return AttrIsNumber(value);
    case ParamKind::kStr:
      return std::holds_alternative<std::string>(value);
    case ParamKind::kDType:
      return std::holds_alternative<DType>(value) &&
             IsValidDType(static_cast<int>(std::get<DType>(value)));
    case ParamKind::kTensor:
    case ParamKind::kOptTensor:
    case ParamKind::kTensorList:
      break;  // not attributes
  }
  return false;
}

std::string Expected(const OpParam& param) {
  switch (param.kind) {
    case ParamKind::kInt:
      return "an int";
    case ParamKind::kInts:
      return param.repeat > 0
                 ? absl::StrCat("an int or a list of ", param.repeat, " ints")
                 : absl::StrCat("an int or a list of at most ", kMaxListLength,
                                " ints");
    case ParamKind::kBool:
      return "a bool";
    case ParamKind::kFloat:
    case ParamKind::kScalar:
      return "a number";
    case ParamKind::kOperand:
    case ParamKind::kOptOperand:
      return "a tensor or a number";
    case ParamKind::kStr:
      return "a string";
    case ParamKind::kDType:
      return "a dtype";
    default:
      return "a tensor";
  }
}

}  // namespace

const OpSchema& GetOp(OpId id) {
  return GetTable().ops[static_cast<size_t>(id)];
}

const OpSchema* FindOp(absl::string_view name) {
  const Table& table = GetTable();
  auto it = table.by_name.find(name);
  return it == table.by_name.end() ? nullptr : it->second;
}

absl::Span<const OpSchema> AllOps() { return GetTable().ops; }

uint64_t OpTableFingerprint() { return GetTable().fingerprint; }

uint64_t FingerprintOf(absl::Span<const OpSchema> ops) {
  OpFingerprint fingerprint(ops.size());
  for (const OpSchema& op : ops) {
    fingerprint.Add(op.name, op.signature, op.flags);
  }
  return fingerprint.value();
}

absl::Status CheckAttr(const OpSchema& schema, int slot,
                       const AttrValue& value) {
  if (slot < 0 || slot >= schema.num_attrs) {
    return absl::InvalidArgumentError(
        absl::StrCat("[", schema.name, "] an attribute slot must be below ",
                     schema.num_attrs, ". Got ", slot, "."));
  }
  const OpParam& param = schema.params[schema.attr_params[slot]];
  const bool ok = IsNone(value) ? param.nullable : Matches(param, value);
  if (ok) return absl::OkStatus();
  const Dims* list = std::get_if<Dims>(&value);
  const bool long_list = list != nullptr && list->size() > kMaxListLength;
  return absl::InvalidArgumentError(
      absl::StrCat("[", schema.name, "] argument '", param.name, "' must be ",
                   Expected(param), param.nullable ? " or None" : "", ". Got ",
                   long_list ? absl::StrCat("a list of ", list->size())
                             : AttrToString(value),
                   "."));
}

}  // namespace holdfast
