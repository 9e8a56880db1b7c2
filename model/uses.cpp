#include "model/uses.hpp"

#include <vector>

namespace remat {
namespace {

using Visit = std::function<void(ValueId, Use)>;

void visit_all(const std::vector<ValueId>& values, Use use, const Visit& visit) {
  for (const ValueId value : values)
    visit(value, use);
}

void visit_op(const OpStatement& op, const Visit& visit) {
  visit_all(op.inputs, Use::read, visit);
  for (const Save& save : op.saves) {
    if (save.copy_of) visit(save.value, Use::made);
    visit(save.value, Use::saved);
  }
  for (const ValueId output : op.outputs)
    visit(output, op.writes == output ? Use::written : Use::made);
}

}  // namespace

void each_use(const Forward& forward, std::size_t at, const Visit& visit) {
  const Statement& statement = forward.statements[at];
  if (const auto* op = std::get_if<OpStatement>(&statement)) {
    visit_op(*op, visit);
  } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
    visit_all(region->inputs, Use::read, visit);
  } else if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) {
    for (const WrapperBegin::Input& input : wrapper->inputs)
      visit(input.value, Use::read);
  } else if (const auto* left = std::get_if<WrapperEnd>(&statement)) {
    visit_all(std::get<WrapperBegin>(forward.statements[left->begin]).outputs, Use::handed_on,
              visit);
  } else if (const auto* bind = std::get_if<Bind>(&statement)) {
    visit(bind->from, Use::handed_on);
  } else if (const auto* needs = std::get_if<NeedsTensor>(&statement)) {
    visit(needs->value, Use::read);
  }
}

}  // namespace remat
