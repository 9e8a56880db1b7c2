#include "schedules/protocols/none.hpp"

namespace remat {

std::unique_ptr<Protocol> make_none(const ProtocolOptions& options) {
  return std::make_unique<NoProtocol>(options);
}

}  // namespace remat
