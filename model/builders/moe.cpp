#include <array>
#include <optional>
#include <string>

#include "model/builders/builder_arguments.hpp"
#include "model/builders/model_assembly.hpp"
#include "model/builders/program_builders.hpp"

namespace remat {
namespace {

using Holds = BuilderKey::Holds;

struct Experts {
  LayerSizes all;
  std::int64_t ffn = 0;
  std::int64_t number = 0;
  std::int64_t top_k = 0;
  std::int64_t rows = 0;  // that all experts together are given
};

/// Sparse attention: a small indexer scores all keys, each query attends to those with the highest
/// scores; one key, which is the value too, for all heads.
struct SparseAttention {
  std::int64_t heads = 0;
  std::int64_t head = 0;
  std::int64_t selected = 0;
  std::int64_t indexer = 0;
};

Experts read_experts(const BuilderArguments& told) {
  Experts model;
  model.all = layer_sizes(told);
  model.ffn = told.size("ffn");
  model.number = told.size("experts");
  model.top_k = told.size_up_to("top_k", model.number, "the number of experts");
  // With a capacity each expert has so many places, filled or not; else no token is left out.
  model.rows = told.has("capacity")
                   ? element_count({model.number, told.size("capacity")})
                   : element_count({model.all.batch, model.all.sequence, model.top_k});
  return model;
}

std::optional<SparseAttention> read_attention(const BuilderArguments& told, const Experts& model) {
  if (!told.flag("dsa")) {
    for (const char* key : {"heads", "selected", "indexer"})
      if (told.has(key)) told.at(key).fail("there is no sparse attention; expected \"dsa\": true");
    return std::nullopt;
  }
  SparseAttention attention;
  attention.head = head_size(told, model.all);
  attention.heads = model.all.hidden / attention.head;
  attention.selected = told.size_up_to("selected", model.all.sequence, "the sequence");
  attention.indexer = told.size("indexer", attention.head);
  return attention;
}

/// Writes the layers down, one after the other.
class MoeBuilder {
 public:
  MoeBuilder(const Experts& model, const std::optional<SparseAttention>& attention,
             ModelAssembly& assembly)
      : model_(model), attention_(attention), assembly_(&assembly) {}

  std::vector<NewParam> params() const {
    const std::int64_t hidden = model_.all.hidden;
    std::vector<NewParam> params;
    if (attention_) {
      params = {{"norm1.gain", {hidden}},
                {"indexer.q.weight", {hidden, attention_->indexer}, false},
                {"indexer.k.weight", {hidden, attention_->indexer}, false},
                {"q.weight", {hidden, hidden}},
                {"kv.weight", {hidden, attention_->head}},
                {"proj.weight", {hidden, hidden}}};
    }
    params.push_back({"norm2.gain", {hidden}});
    params.push_back({"router.weight", {hidden, model_.number}});
    params.push_back({"up.weight", {model_.number, hidden, model_.ffn}});
    params.push_back({"down.weight", {model_.number, model_.ffn, hidden}});
    return params;
  }

  ValueId layer(std::int64_t number, ValueId x) {
    return assembly_->layer(number, true, [&] { return experts(attention_ ? attended(x) : x); });
  }

 private:
  ValueId attended(ValueId x) {
    const SparseAttention& sizes = *attention_;
    const ValueId normed = norm("norm1", x);
    const ValueId chosen = selected_keys(normed);
    const Shape heads = {model_.all.batch, model_.all.sequence, sizes.heads, sizes.head};
    const ValueId flat = linear("q", normed, model_.all.hidden);
    const ValueId q = assembly_->view("view", flat, "q.heads", {heads, dense_strides(heads)});
    const ValueId keys = assembly_->one(
        "gather", {linear("kv", normed, sizes.head), chosen},
        tensor("selected", {model_.all.batch, model_.all.sequence, sizes.selected, sizes.head}));
    const Shape scores = {model_.all.batch, model_.all.sequence, sizes.heads, sizes.selected};
    const ValueId raw =
        assembly_->product("matmul", q, transposed(keys, "selected.t"), tensor("scores", scores));
    const ValueId shares = assembly_->one("softmax", {raw}, tensor("softmax", scores));
    const ValueId core = assembly_->product("matmul", shares, keys, tensor("core", heads));
    const Shape rows = model_.all.rows(model_.all.hidden);
    const ValueId merged = assembly_->view("view", core, "attention", {rows, dense_strides(rows)});
    return assembly_->one("add", {x, linear("proj", merged, model_.all.hidden)},
                          tensor("attended", rows));
  }

  /// No gradient goes through a choice, so the indexer has none; it is trained elsewhere. Its
  /// scores are computed again in a replay, which of them are highest is not.
  ValueId selected_keys(ValueId normed) {
    const ValueId scores = assembly_->without_grad([&] {
      const ValueId q = linear("indexer.q", normed, attention_->indexer);
      const ValueId k = linear("indexer.k", normed, attention_->indexer);
      return assembly_->product("matmul", q, transposed(k, "indexer.k.t"),
                                tensor("indexer.scores", model_.all.rows(model_.all.sequence)));
    });
    return assembly_->excluded(true, "select", {scores}, [&] {
      const Shape chosen = model_.all.rows(attention_->selected);
      return assembly_
          ->op("topk", {scores},
               {tensor("select.scores", chosen), assembly_->tensor("select.keys", chosen, "i64")})
          .back();
    });
  }

  ValueId experts(ValueId x) {
    const ValueId normed = norm("norm2", x);
    const ValueId routed = linear("router", normed, model_.number);
    const ValueId scores = assembly_->one("softmax", {routed},
                                          tensor("router.scores", model_.all.rows(model_.number)));
    const Shape chosen = model_.all.rows(model_.top_k);
    const std::vector<ValueId> top = assembly_->op(
        "topk", {scores}, {tensor("shares", chosen), assembly_->tensor("experts", chosen, "i64")});
    const ValueId order =
        assembly_->one("argsort", {top[1]}, assembly_->tensor("order", {model_.rows}, "i64"));
    const ValueId tokens =
        assembly_->one("index_select", {normed, order}, tensor("tokens", rows(model_.all.hidden)));
    const ValueId out = products(tokens);
    const ValueId share = assembly_->one("gather", {top[0], order}, tensor("share", rows(1)));
    const ValueId weighted =
        assembly_->one("mul", {out, share}, tensor("weighted", rows(model_.all.hidden)));
    return assembly_->one("index_add", {x, order, weighted},
                          tensor("out", model_.all.rows(model_.all.hidden)));
  }

  ValueId products(ValueId tokens) {
    const ValueId up = assembly_->param("up.weight");
    const ValueId down = assembly_->param("down.weight");
    return assembly_->excluded(true, "products", {tokens, up, down}, [&] {
      const ValueId wide =
          assembly_->product("grouped_matmul", tokens, up, tensor("up", rows(model_.ffn)));
      const ValueId act = assembly_->one("silu", {wide}, tensor("act", rows(model_.ffn)));
      return assembly_->product("grouped_matmul", act, down,
                                tensor("down", rows(model_.all.hidden)));
    });
  }

  ValueId norm(const std::string& name, ValueId x) {
    return assembly_->one("rmsnorm", {x, assembly_->param(name + ".gain")},
                          tensor(name, model_.all.rows(model_.all.hidden)));
  }

  ValueId linear(const std::string& name, ValueId x, std::int64_t to) {
    return assembly_->product("matmul", x, assembly_->param(name + ".weight"),
                              tensor(name, model_.all.rows(to)));
  }

  ValueId transposed(ValueId matrix, std::string_view name) {
    ViewOf how{assembly_->shape(matrix), dense_strides(assembly_->shape(matrix))};
    std::swap(how.shape.back(), how.shape[how.shape.size() - 2]);
    std::swap(how.stride.back(), how.stride[how.stride.size() - 2]);
    return assembly_->view("transpose", matrix, name, how);
  }

  Shape rows(std::int64_t columns) const { return {model_.rows, columns}; }
  NewTensor tensor(std::string_view name, const Shape& shape) const {
    return assembly_->tensor(name, shape);
  }

  Experts model_;
  std::optional<SparseAttention> attention_;
  ModelAssembly* assembly_;
};

}  // namespace

std::span<const BuilderKey> moe_keys() {
  static constexpr std::array<std::string_view, 1> names = {"moe"};
  static constexpr std::array keys = {BuilderKey{"builder", Holds::choice, true, names},
                                      BuilderKey{"layers", Holds::size, true},
                                      BuilderKey{"hidden", Holds::size, true},
                                      BuilderKey{"ffn", Holds::size, true},
                                      BuilderKey{"experts", Holds::size, true},
                                      BuilderKey{"top_k", Holds::size, true},
                                      BuilderKey{"capacity", Holds::size},
                                      BuilderKey{"sequence", Holds::size, true},
                                      BuilderKey{"batch", Holds::size},
                                      BuilderKey{"dtype", Holds::choice, false, builder_dtypes},
                                      BuilderKey{"dsa", Holds::flag},
                                      BuilderKey{"heads", Holds::size},
                                      BuilderKey{"selected", Holds::size},
                                      BuilderKey{"indexer", Holds::size}};
  return keys;
}

Program build_moe(const JsonPlace& place, const ProgramReading& reading) {
  const BuilderArguments told(place, moe_keys());
  const Experts model = read_experts(told);
  const std::optional<SparseAttention> attention = read_attention(told, model);
  ModelAssembly assembly(place, reading, told.choice("dtype"));
  MoeBuilder builder(model, attention, assembly);
  return assembly.layered(model.all.layers, model.all.rows(model.all.hidden), builder.params(),
                          [&](std::int64_t number, ValueId x) { return builder.layer(number, x); });
}

}  // namespace remat
