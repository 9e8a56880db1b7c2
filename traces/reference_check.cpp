#include "traces/reference_check.hpp"

#include <fmt/format.h>

#include <array>

#include "traces/shown.hpp"

namespace remat {
namespace {

constexpr std::array tensor_lists = {Field::outputs, Field::reads, Field::tensors, Field::inputs};

}  // namespace

void ReferenceCheck::describe(const TensorView& tensor) {
  if (tensor.tensor) tensors_.insert(*tensor.tensor);
}

void ReferenceCheck::describe_all(const EventView& event) {
  for (const Field list : tensor_lists) {
    if (event.lists_tensors(list)) {
      for (std::size_t i = 0; i < event.list_size(list); ++i)
        describe(event.tensor_item(list, i));
    }
  }
  if (const auto tensor = event.tensor(Field::tensor)) describe(*tensor);
  switch (event.kind()) {
    case Kind::tensor:
      if (const auto id = event.integer(Field::t)) tensors_.insert(*id);
      break;
    case Kind::pack:
      if (const auto slot = event.name(Field::slot)) slots_.insert(slot->index());
      break;
    case Kind::frame_create:
    case Kind::unit_begin:
      if (const auto frame = event.integer(Field::frame)) frames_.insert(*frame);
      break;
    default:
      break;  // the other kinds describe nothing of their own
  }
}

std::optional<std::string> ReferenceCheck::undescribed_tensor(const EventView& event) const {
  for (const Field list : tensor_lists) {
    if (event.lists_tensors(list)) continue;
    for (std::size_t i = 0; i < event.list_size(list); ++i) {
      if (const std::int64_t id = event.list_item(list, i); !tensors_.contains(id)) {
        return fmt::format(
            "tensor {} is used before any event describes it (at /{}/{}); expected an earlier "
            "event "
            "that shows the tensor, or its description under /reads",
            id, name_of(list), i);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> ReferenceCheck::undescribed(const EventView& event) const {
  switch (event.kind()) {
    case Kind::op:
    case Kind::op_error:
    case Kind::inputs_save:
    case Kind::inputs_unpack:
    case Kind::sac_decide:
    case Kind::cache_pop:
      return undescribed_tensor(event);
    case Kind::unpack_begin:
    case Kind::unpack:
    case Kind::holder_free:
      if (const auto slot = event.name(Field::slot); slot && !slots_.contains(slot->index())) {
        return fmt::format(
            "slot '{}' is used before anything was packed in it (at /slot); expected an earlier "
            "pack "
            "of that slot",
            shown(event.text(Field::slot)));
      }
      return std::nullopt;
    case Kind::frame_free:
    case Kind::inputs_unpack_begin:
      if (const auto frame = event.integer(Field::frame); frame && !frames_.contains(*frame)) {
        return fmt::format(
            "frame {} is used before it was created (at /frame); expected an earlier frame_create",
            *frame);
      }
      return std::nullopt;
    default:
      return std::nullopt;  // the other kinds refer to nothing that must come before
  }
}

std::optional<std::string> ReferenceCheck::observe(const EventView& event) {
  describe_all(event);  // an op may read what its own `reads` describe
  return undescribed(event);
}

}  // namespace remat
