#include <algorithm>
#include <array>

#include "traces/short_text.hpp"
#include "traces/vocabulary.hpp"

// Names to members of the vocabulary and back.

namespace remat {
namespace {

using T = FieldType;

constexpr std::array<std::string_view, field_count> field_names = {"seq",
                                                                   "ts_ns",
                                                                   "thread",
                                                                   "rank",
                                                                   "phase",
                                                                   "microbatch",
                                                                   "kind",
                                                                   "live",
                                                                   "gid",
                                                                   "graph_task",
                                                                   "node",
                                                                   "unit",
                                                                   "inv",
                                                                   "frame",
                                                                   "wrapper",
                                                                   "call",
                                                                   "stage",
                                                                   "why",
                                                                   "format",
                                                                   "version",
                                                                   "case",
                                                                   "source",
                                                                   "config",
                                                                   "expect",
                                                                   "plain_save_observation",
                                                                   "not_recorded",
                                                                   "producer",
                                                                   "framework",
                                                                   "torch",
                                                                   "python",
                                                                   "step",
                                                                   "cause",
                                                                   "retain",
                                                                   "captures",
                                                                   "root",
                                                                   "prefire",
                                                                   "exec",
                                                                   "checkpointed",
                                                                   "reentrant",
                                                                   "nested_in",
                                                                   "in_replay",
                                                                   "ended_by",
                                                                   "ops",
                                                                   "packs",
                                                                   "rng_crc",
                                                                   "early_stop_enabled",
                                                                   "early_stop",
                                                                   "impl",
                                                                   "tensors",
                                                                   "n_nontensor",
                                                                   "name",
                                                                   "attrs",
                                                                   "inputs",
                                                                   "reads",
                                                                   "outputs",
                                                                   "dur_ns",
                                                                   "internal",
                                                                   "type",
                                                                   "first_line",
                                                                   "requires_grad",
                                                                   "storage",
                                                                   "bytes",
                                                                   "role",
                                                                   "op",
                                                                   "tensor",
                                                                   "op_seq",
                                                                   "version_at_dispatch",
                                                                   "slot",
                                                                   "idx",
                                                                   "held",
                                                                   "region",
                                                                   "path",
                                                                   "view",
                                                                   "unmanaged",
                                                                   "handle",
                                                                   "exact",
                                                                   "relative_offset",
                                                                   "boundary",
                                                                   "of",
                                                                   "holder_alive",
                                                                   "after_packs",
                                                                   "after_ops",
                                                                   "ok",
                                                                   "n_forward",
                                                                   "n_replay",
                                                                   "n_holders_alive",
                                                                   "error",
                                                                   "from",
                                                                   "by",
                                                                   "triggers_replay",
                                                                   "retained",
                                                                   "code",
                                                                   "label",
                                                                   "first_lines",
                                                                   "cause_chain",
                                                                   "raised_after_seq",
                                                                   "where",
                                                                   "message",
                                                                   "saved",
                                                                   "policy",
                                                                   "phase_remat",
                                                                   "body",
                                                                   "output",
                                                                   "stored",
                                                                   "popped",
                                                                   "recipes",
                                                                   "declared_bytes",
                                                                   "save_kind",
                                                                   "shape",
                                                                   "retain_graph",
                                                                   "param",
                                                                   "value",
                                                                   "site",
                                                                   "generator",
                                                                   "tag",
                                                                   "to",
                                                                   "scope",
                                                                   "field",
                                                                   "key",
                                                                   "group",
                                                                   "n",
                                                                   "peer",
                                                                   "stream",
                                                                   "event",
                                                                   "writes",
                                                                   "direction",
                                                                   "action",
                                                                   "msg",
                                                                   "save_output",
                                                                   "skipped",
                                                                   "boundaries",
                                                                   "entry_call",
                                                                   "refused",
                                                                   "compiled",
                                                                   "leaf",
                                                                   "leaves",
                                                                   "kept",
                                                                   "bindings",
                                                                   "used",
                                                                   "storages",
                                                                   "left",
                                                                   "entries",
                                                                   "input",
                                                                   "structure",
                                                                   "class",
                                                                   "owner",
                                                                   "t",
                                                                   "s",
                                                                   "dtype",
                                                                   "stride",
                                                                   "off",
                                                                   "v",
                                                                   "device",
                                                                   "frames",
                                                                   "owners",
                                                                   "diagnosis",
                                                                   "caught",
                                                                   "ranks"};
static_assert(!field_names.back().empty(), "one name a field");

constexpr std::array<std::string_view, phase_count> phase_names = {
    "none",           "setup",           "forward",   "replay",    "backward",
    "backward_input", "backward_weight", "optimizer", "pretrigger"};

/// A word → its index, by open addressing over a fixed table of spellings.
class WordIndex {
 public:
  explicit WordIndex(std::span<const std::string_view> words) : words_(words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      std::size_t at = text_bits(words[i]) % cells_.size();
      while (cells_[at] != empty)
        at = (at + 1) % cells_.size();
      cells_[at] = static_cast<std::uint16_t>(i);
    }
  }
  std::optional<std::size_t> find(std::string_view word) const {
    for (std::size_t at = text_bits(word) % cells_.size(); cells_[at] != empty;
         at = (at + 1) % cells_.size())
      if (same_text(words_[cells_[at]], word)) return cells_[at];
    return std::nullopt;
  }

 private:
  static constexpr std::uint16_t empty = 0xffff;
  std::span<const std::string_view> words_;
  std::array<std::uint16_t, 1024> cells_ = [] {
    std::array<std::uint16_t, 1024> cells{};
    cells.fill(empty);
    return cells;
  }();
};

const std::array<std::string_view, kind_count>& kind_names() {
  static const std::array<std::string_view, kind_count> names = [] {
    std::array<std::string_view, kind_count> filled{"unknown"};
    for (const KindRow& row : kind_rows())
      filled[static_cast<std::size_t>(row.kind)] = row.name;
    return filled;
  }();
  return names;
}

constexpr std::uint8_t no_type = 0xff;
using TypeTable = std::array<std::array<std::uint8_t, field_count>, kind_count>;

TypeTable filled_types() {
  TypeTable table{};
  for (auto& row : table) {
    row.fill(no_type);
    for (const FieldRow& common : context_fields())
      row[static_cast<std::size_t>(common.field)] = static_cast<std::uint8_t>(common.type);
  }
  for (const KindRow& kind : kind_rows()) {
    for (const FieldRow& own : kind.fields) {
      table[static_cast<std::size_t>(kind.kind)][static_cast<std::size_t>(own.field)] =
          static_cast<std::uint8_t>(own.type);
    }
  }
  return table;
}

}  // namespace

std::string_view name_of(Kind kind) {
  return kind_names()[static_cast<std::size_t>(kind)];
}
std::string_view name_of(Field field) {
  return field_names[static_cast<std::size_t>(field)];
}
std::string_view name_of(Phase phase) {
  return phase_names[static_cast<std::size_t>(phase)];
}

std::optional<Kind> kind_named(std::string_view name) {
  static const WordIndex index(kind_names());
  const auto found = index.find(name);
  if (!found || *found == 0) return std::nullopt;
  return static_cast<Kind>(*found);
}

std::optional<Field> field_named(std::string_view name) {
  static const WordIndex index(field_names);
  const auto found = index.find(name);
  if (!found) return std::nullopt;
  return static_cast<Field>(*found);
}

std::optional<Phase> phase_named(std::string_view name) {
  const auto* found = std::find(phase_names.begin() + 1, phase_names.end(), name);
  if (found == phase_names.end()) return std::nullopt;
  return static_cast<Phase>(found - phase_names.begin());
}

std::optional<FieldType> field_type(Kind kind, Field field) {
  static const TypeTable types = filled_types();
  const std::uint8_t type = types[static_cast<std::size_t>(kind)][static_cast<std::size_t>(field)];
  if (type == no_type) return std::nullopt;
  return static_cast<FieldType>(type);
}

std::string_view expectation(FieldType type) {
  switch (type) {
    case T::integer:
      return "an integer";
    case T::count:
      return "an integer of at least 0";
    case T::boolean:
      return "true or false";
    case T::name:
    case T::text:
      return "a string";
    case T::integers:
      return "a list of integers";
    case T::tensor:
      return "a tensor object";
    case T::tensors:
      return "a list of tensor objects";
    case T::ids_or_tensors:
      return "a list of tensor ids or of tensor objects";
    case T::session:
      return "a pair [kind, number or name]";
    case T::node:
      return "a name or a pair [name, number]";
    case T::json:
      return "a JSON value";
  }
  return {};
}

}  // namespace remat
