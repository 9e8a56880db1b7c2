#include <array>
#include <string>

#include "model/builders/builder_arguments.hpp"
#include "model/builders/model_assembly.hpp"
#include "model/builders/program_builders.hpp"

namespace remat {
namespace {

using Holds = BuilderKey::Holds;

/// One rank's sizes, and what is done with what.
struct Transformer {
  LayerSizes all;
  std::int64_t head = 0;          // elements of one head
  std::int64_t heads = 0;         // on this rank
  std::int64_t ffn = 0;           // on this rank
  std::int64_t sequence_own = 0;  // of what ranks share out by sequence
  bool dropout = false;
  bool flash = false;
  bool core_recomputed = false;
  bool core_kept = false;
  bool layer_checkpointed = false;

  std::int64_t width() const { return heads * head; }
  Shape shared() const { return {all.batch, sequence_own, all.hidden}; }
};

void read_attention(const BuilderArguments& told, Transformer& model) {
  const std::string attention = told.choice("attention");
  model.flash = told.flag("flash");
  model.core_recomputed = attention == "recomputed";
  model.core_kept = attention == "kept";
  model.layer_checkpointed = told.choice("checkpoint") == "layer";
  if (model.core_kept && !model.layer_checkpointed) {
    told.at("attention")
        .fail(
            "no replay would run the attention that is kept; expected \"checkpoint\": \"layer\" "
            "with it");
  }
}

Transformer read_transformer(const BuilderArguments& told) {
  Transformer model;
  model.all = layer_sizes(told);
  model.head = head_size(told, model.all);
  const std::int64_t heads = model.all.hidden / model.head;
  const std::int64_t ffn = told.has("ffn") ? told.size("ffn") : 4 * model.all.hidden;
  const std::int64_t ranks = told.divisor("tensor_parallel", 1, heads, "the number of heads");
  told.divisor("tensor_parallel", 1, ffn, "the size of the feed-forward layer");
  model.heads = heads / ranks;
  model.ffn = ffn / ranks;
  model.sequence_own = model.all.sequence;
  if (told.flag("sequence_parallel"))
    model.sequence_own /= told.divisor("tensor_parallel", 1, model.all.sequence, "the sequence");
  model.dropout = !told.has("dropout") || told.flag("dropout");
  read_attention(told, model);
  return model;
}

/// Writes the layers down, one after the other.
class TransformerBuilder {
 public:
  TransformerBuilder(const Transformer& model, ModelAssembly& assembly)
      : model_(model), assembly_(&assembly) {}

  std::vector<NewParam> params() const {
    const std::int64_t hidden = model_.all.hidden;
    return {{"norm1.gain", {hidden}},
            {"qkv.weight", {hidden, 3 * model_.width()}},
            {"proj.weight", {model_.width(), hidden}},
            {"norm2.gain", {hidden}},
            {"up.weight", {hidden, model_.ffn}},
            {"down.weight", {model_.ffn, hidden}}};
  }

  ValueId layer(std::int64_t number, ValueId x) {
    return assembly_->layer(number, model_.layer_checkpointed, [&] { return mlp(attention(x)); });
  }

 private:
  ValueId attention(ValueId x) {
    const ValueId normed = norm("norm1", x);
    const ValueId qkv = linear("qkv", normed, model_.all.rows(3 * model_.width()));
    const ValueId out =
        assembly_->checkpointed(model_.core_recomputed, "core", [&] { return kept_core(qkv); });
    return add("attended", x, dropped("proj", linear("proj", out, model_.shared())));
  }

  ValueId mlp(ValueId x) {
    const ValueId normed = norm("norm2", x);
    const ValueId up = linear("up", normed, model_.all.rows(model_.ffn));
    const ValueId act = assembly_->one("gelu", {up}, tensor("act", model_.all.rows(model_.ffn)));
    return add("out", x, dropped("down", linear("down", act, model_.shared())));
  }

  ValueId kept_core(ValueId qkv) {
    const ValueId q = head_view("q", qkv, 0, false);
    const ValueId k = head_view("k", qkv, 1, !model_.flash);
    const ValueId v = head_view("v", qkv, 2, false);
    const ValueId out = assembly_->excluded(model_.core_kept, "core", {q, k, v}, [&] {
      return model_.flash ? flash(q, k, v) : core(q, k, v);
    });
    // Either core writes its result where the projection reads it, head beside head.
    const Shape shape = model_.all.rows(model_.width());
    return assembly_->view("view", out, "attention", {shape, dense_strides(shape)});
  }

  ValueId core(ValueId q, ValueId k, ValueId v) {
    const Shape scores = {model_.all.batch, model_.heads, model_.all.sequence, model_.all.sequence};
    const ValueId raw = assembly_->product("matmul", q, k, tensor("scores", scores));
    const ValueId probabilities = assembly_->one("softmax", {raw}, tensor("softmax", scores));
    const std::int64_t width = model_.width();
    NewTensor out =
        tensor("core", {model_.all.batch, model_.heads, model_.all.sequence, model_.head});
    out.layout.stride = {model_.all.sequence * width, model_.head, width, 1};
    return assembly_->product("matmul", dropped("softmax", probabilities), v, out);
  }

  /// One kernel: of its scores it keeps one number a row, in f32.
  ValueId flash(ValueId q, ValueId k, ValueId v) {
    const auto& [layers, batch, sequence, hidden] = model_.all;
    return assembly_
        ->fused_attention({q, k, v},
                          {tensor("core", {batch, sequence, model_.heads, model_.head}),
                           assembly_->tensor("logsumexp", {batch, model_.heads, sequence}, "f32")},
                          {batch, model_.heads, sequence, 2 * sequence})
        .front();
  }

  /// One of q, k and v, which lie side by side, as a matrix for each head.
  ValueId head_view(std::string_view name, ValueId qkv, std::int64_t which, bool is_transposed) {
    const std::int64_t row = 3 * model_.width();
    ViewOf how{{model_.all.batch, model_.heads, model_.all.sequence, model_.head},
               {model_.all.sequence * row, model_.head, row, 1},
               which * model_.width()};
    if (is_transposed) {
      std::swap(how.shape[2], how.shape[3]);
      std::swap(how.stride[2], how.stride[3]);
    }
    return assembly_->view("permute", qkv, name, how);
  }

  ValueId norm(const std::string& name, ValueId x) {
    return assembly_->one("layernorm", {x, assembly_->param(name + ".gain")},
                          tensor(name, model_.shared()));
  }

  /// Without a bias, which saves nothing. All rows are computed, also where ranks share out what
  /// goes in or comes out: then the op stands for the collective too, and saves its own part.
  ValueId linear(const std::string& name, ValueId x, const Shape& made) {
    return assembly_->product("matmul", x, assembly_->param(name + ".weight"), tensor(name, made),
                              model_.all.rows(made.back()));
  }

  ValueId dropped(const std::string& name, ValueId x) {
    if (!model_.dropout) return x;
    const Shape shape = assembly_->shape(x);
    return assembly_
        ->op("dropout", {x},
             {tensor(name + ".dropped", shape), assembly_->tensor(name + ".mask", shape, "bool")})
        .front();
  }

  ValueId add(const std::string& name, ValueId a, ValueId b) {
    return assembly_->one("add", {a, b}, tensor(name, model_.shared()));
  }

  NewTensor tensor(std::string_view name, const Shape& shape) const {
    return assembly_->tensor(name, shape);
  }

  Transformer model_;
  ModelAssembly* assembly_;
};

}  // namespace

std::span<const BuilderKey> transformer_keys() {
  static constexpr std::array<std::string_view, 1> names = {"transformer"};
  static constexpr std::array<std::string_view, 3> core = {"stored", "recomputed", "kept"};
  static constexpr std::array<std::string_view, 2> regions = {"none", "layer"};
  static constexpr std::array keys = {BuilderKey{"builder", Holds::choice, true, names},
                                      BuilderKey{"layers", Holds::size, true},
                                      BuilderKey{"hidden", Holds::size, true},
                                      BuilderKey{"heads", Holds::size, true},
                                      BuilderKey{"sequence", Holds::size, true},
                                      BuilderKey{"batch", Holds::size},
                                      BuilderKey{"ffn", Holds::size},
                                      BuilderKey{"dtype", Holds::choice, false, builder_dtypes},
                                      BuilderKey{"tensor_parallel", Holds::size},
                                      BuilderKey{"sequence_parallel", Holds::flag},
                                      BuilderKey{"attention", Holds::choice, false, core},
                                      BuilderKey{"flash", Holds::flag},
                                      BuilderKey{"dropout", Holds::flag},
                                      BuilderKey{"checkpoint", Holds::choice, false, regions}};
  return keys;
}

Program build_transformer(const JsonPlace& place, const ProgramReading& reading) {
  const BuilderArguments told(place, transformer_keys());
  const Transformer model = read_transformer(told);
  ModelAssembly assembly(place, reading, told.choice("dtype"));
  TransformerBuilder builder(model, assembly);
  return assembly.layered(model.all.layers, model.shared(), builder.params(),
                          [&](std::int64_t number, ValueId x) { return builder.layer(number, x); });
}

}  // namespace remat
