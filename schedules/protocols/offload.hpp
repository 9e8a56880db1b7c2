#pragma once

#include "schedules/protocols/none.hpp"

namespace remat {

/// No checkpointing: all that is saved for backward is kept, and that of the program's offload
/// groups waits on the host (protocols.md P11). What goes and when is OffloadPolicy's, which goes
/// with every other protocol too.
class OffloadProtocol : public NoProtocol {
 public:
  using NoProtocol::NoProtocol;
  std::string_view name() const override { return "offload"; }
};

std::unique_ptr<Protocol> make_offload(const ProtocolOptions& options);

}  // namespace remat
