#include "model/op_saves.hpp"

#include <cstddef>

namespace remat {

std::vector<Save> saves_by_table(const Program& program, const OpStatement& op) {
  return saves_by_table(op, [&](ValueId value) { return program.values[value].requires_grad; });
}

std::vector<Save> saves_by_table(const OpStatement& op,
                                 const std::function<bool(ValueId)>& requires_grad) {
  std::vector<Save> saves;
  for (const SaveRule& rule : op.kind->saves) {
    const bool is_input = rule.what == SaveRule::What::input;
    const std::vector<ValueId>& from = is_input ? op.inputs : op.outputs;
    if (rule.index >= from.size()) continue;
    if (rule.if_grad_of >= 0) {
      const auto needs = static_cast<std::size_t>(static_cast<unsigned char>(rule.if_grad_of));
      if (needs >= op.inputs.size() || !requires_grad(op.inputs[needs])) continue;
      if (op.inputs.size() < 2) continue;
    }
    const auto factor =
        static_cast<std::uint8_t>(is_input ? rule.index : rule.index + Monomial::first_output);
    saves.push_back({from[rule.index], !is_input, factor});
  }
  return saves;
}

}  // namespace remat
