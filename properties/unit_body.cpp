#include <string>
#include <utility>

#include "properties/body_generator.hpp"
#include "properties/unit_generator.hpp"

// What save units look at in the body of a checkpointed region (protocols.md P8, P9).

namespace remat {

void BodyGenerator::write_some(std::size_t depth) {
  write_plain();
  for (std::size_t at = tape_->position(); tape_->more(1); at = tape_->position()) {
    write_statement(depth);
    tape_->end_span(at);
  }
}

void BodyGenerator::write_callable(std::size_t depth) {
  RegionBegin callable;
  callable.name = callable_name(tape_->choose(n_callables));
  callable.kind = RegionKind::unit;
  const std::size_t begin = builder_->begin_region(std::move(callable));
  write_some(depth + 1);
  builder_->end_region(begin, {});
}

void BodyGenerator::write_mark() {
  builder_->mark(marker_name(tape_->choose(n_markers)));
  write_plain();
}

/// An op that units name writes in place, and no unit keeps what it writes.
void BodyGenerator::write_apart() {
  const ValueId made = write_op("neg", {pick()}, 1, false);
  builder_->in_place({&op_kind_named("scale"), {made}, next_cost()});
  refresh_pool();
}

void BodyGenerator::write_compiled(std::size_t depth) {
  const std::size_t begin = builder_->begin_compiled();
  write_some(depth + 1);
  builder_->end_compiled(begin);
}

/// An op writes in place where a unit's markers have all kept.
void BodyGenerator::write_between_markers() {
  builder_->mark("edit_begin");
  const ValueId made = write_op("neg", {builder_->since_write(pool_.back())}, 1, false);
  builder_->in_place({&op_kind_named("scale"), {made}});
  refresh_pool();
  builder_->mark("edit_end");
}

}  // namespace remat
