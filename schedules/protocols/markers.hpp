#pragma once

#include <memory>

#include "schedules/protocols/save_unit_protocol.hpp"

namespace remat {

/// P9, the older engine: what runs between two markers is kept. An op there that writes in place is
/// refused. Source: protocols.md P9.
class MarkersProtocol : public SaveUnitProtocol {
 public:
  explicit MarkersProtocol(const ProtocolOptions& options);
  std::string_view name() const override { return "markers"; }
};

std::unique_ptr<Protocol> make_markers(const ProtocolOptions& options);

}  // namespace remat
