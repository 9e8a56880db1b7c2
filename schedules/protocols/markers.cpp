#include "schedules/protocols/markers.hpp"

namespace remat {

MarkersProtocol::MarkersProtocol(const ProtocolOptions& options)
    : SaveUnitProtocol(
          options, {.sees_compiled = false,
                    .refuses_writes = true,
                    .ends_one_op_late = options.fault == ProtocolFault::markers_end_late,
                    .ends_where_it_starts = options.fault == ProtocolFault::markers_end_at_start}) {
}

std::unique_ptr<Protocol> make_markers(const ProtocolOptions& options) {
  return std::make_unique<MarkersProtocol>(options);
}

}  // namespace remat
