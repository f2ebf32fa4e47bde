#include "rendezvous.h"

#include <thread>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <nlohmann/json.hpp>

#include "aitraining/core/error.h"
#include "aitraining/core/log.h"
#include "aitraining/core/strings.h"

namespace aitraining::comm {
namespace {

using Clock = std::chrono::steady_clock;
using Store = c10::intrusive_ptr<c10d::Store>;
using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kLook{100};  // how often a rank looks, after its first few looks
constexpr std::chrono::seconds kLinger{3};
constexpr std::chrono::seconds kRemind{15};  // how often rank 0 says who is missing

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::string info_key(int rank) { return fmt::format("rank/{}", rank); }

class Meeting {
 public:
  Meeting(Store store, const GroupOptions& options) : store_(std::move(store)), options_(options) {}

  void run() {
    claim();
    wait_for_all();
    compare();
  }

 private:
  int node_of(int rank) const { return rank / std::max(1, options_.local_world_size); }
  int nodes() const { return options_.world_size / std::max(1, options_.local_world_size); }

  // Every rank ends with the same sentence.
  [[noreturn]] void call_off(const std::string& sentence) {
    store_->set("abort", bytes_of(sentence));
    leave();
    throw UserError("{}", sentence);
  }

  void end_if_called_off() {
    if (!store_->check({"abort"})) return;
    const std::string sentence = text_of(store_->get("abort"));
    leave();
    throw PeerLostError(sentence);
  }

  // Rank 0's process may hold the store: it waits a moment for the others to read the sentence.
  void leave() {
    const int64_t here = store_->add("present", 0);
    if (store_->add("left", 1) >= here) store_->set("all left", bytes_of("yes"));
    if (options_.rank != 0) return;
    for (const auto end = Clock::now() + kLinger; Clock::now() < end && !store_->check({"all left"});) {
      std::this_thread::sleep_for(kLook);
    }
  }

  void claim() {
    store_->add("present", 1);
    // The first to come says how many ranks there are; without agreement on that, numbers mean nothing.
    const std::string mine = fmt::format("{} ranks, {} a machine", options_.world_size, options_.local_world_size);
    const std::string first = text_of(store_->compareSet("shape", {}, bytes_of(mine)));
    if (first != mine) {
      call_off(fmt::format("rank {} was started for {}, another machine for {}. Give every machine the same --nnodes and "
                           "--nproc-per-node.", options_.rank, mine, first));
    }
    if (store_->add(fmt::format("claim/{}", options_.rank), 1) > 1) {
      call_off(fmt::format("two processes say that they are rank {} of this run. Each machine needs its own --node-rank "
                           "(0 to {}); this one was started with {}.",
                           options_.rank, nodes() - 1, node_of(options_.rank)));
    }
    Json settings = Json::object();
    for (const auto& [name, value] : options_.settings) settings[name] = value;
    store_->set(info_key(options_.rank), bytes_of(settings.dump()));
    if (store_->add("arrived", 1) == options_.world_size) store_->set("complete", bytes_of("yes"));
  }

  void wait_for_all() {
    const auto begin = Clock::now();
    auto reminded = begin;
    wait_for("complete", [&] {
      const auto now = Clock::now();
      if (now - begin > options_.rendezvous_timeout) {
        throw EnvironmentError("[comm] rank {} waited {} s for the other ranks: {}. Start the command on every machine, "
                               "with the same --nnodes and --nproc-per-node and its own --node-rank.",
                               options_.rank, options_.rendezvous_timeout.count(), missing());
      }
      if (options_.rank == 0 && now - reminded > kRemind) {
        log::info("waiting for the other ranks: {}", missing());
        reminded = now;
      }
    });
  }

  // Looks until the key is there; `look` may throw. A sentence by which some rank calls the run off ends it.
  template <class F>
  void wait_for(const char* key, F&& look) {
    auto pause = std::chrono::milliseconds(1);
    while (!store_->check({key})) {
      end_if_called_off();
      look();
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLook);
    }
    end_if_called_off();
  }

  std::string missing() {
    std::vector<std::string> ranks;
    for (int r = 0; r < options_.world_size; ++r) {
      if (!store_->check({info_key(r)})) ranks.push_back(fmt::format("{}", r));
    }
    std::string text = fmt::format("{} of {} not there (rank {}", ranks.size(), options_.world_size, join(ranks, ", "));
    if (nodes() > 1 && !ranks.empty()) text += fmt::format("; machine {}", node_of(std::stoi(ranks.front())));
    return text + ")";
  }

  // Rank 0's word counts.
  void compare() {
    const auto first = Json::parse(text_of(store_->get(info_key(0))));
    std::vector<std::string> differences;
    for (const auto& [name, value] : options_.settings) {
      const std::string other = first.value(name, "");
      if (other != value) differences.push_back(fmt::format("{} {} here, {} on rank 0", name, value, other));
    }
    if (!differences.empty()) {
      call_off(fmt::format("rank {} was started with other settings than rank 0: {}. Give every machine the same command.",
                           options_.rank, join(differences, "; ")));
    }
    // A rank that found a difference calls off before it answers here.
    if (store_->add("agreed", 1) == options_.world_size) store_->set("all agreed", bytes_of("yes"));
    const auto begin = Clock::now();
    wait_for("all agreed", [&] {
      if (Clock::now() - begin < options_.rendezvous_timeout) return;
      throw EnvironmentError("[comm] rank {}: not all ranks agreed on the settings in {} s", options_.rank,
                             options_.rendezvous_timeout.count());
    });
  }

  Store store_;
  const GroupOptions& options_;
};

Store connect(const GroupOptions& options) {
  c10d::TCPStoreOptions store;
  store.port = static_cast<uint16_t>(options.master_port);
  store.isServer = options.rank == 0 && !options.store_elsewhere;
  store.waitWorkers = false;  // the meeting below waits, and can say for whom
  store.timeout = options.rendezvous_timeout;
  if (store.isServer && options.store_listen_fd >= 0) store.masterListenFd = options.store_listen_fd;
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.master_addr, store);
  } catch (const std::exception& e) {
    const std::string text = e.what();
    throw EnvironmentError(
        "[comm] rank {} of {} cannot reach the rendezvous at {}:{} within {} s. Is machine 0 running the same command, is "
        "this its address (--master-addr) and port (--master-port), and does no firewall stand between? ({})",
        options.rank, options.world_size, options.master_addr, options.master_port, options.rendezvous_timeout.count(),
        text.substr(0, text.find('\n')));
  }
}

}  // namespace

Store meet(const GroupOptions& options) {
  Store store = connect(options);
  if (!options.store_prefix.empty()) store = c10::make_intrusive<c10d::PrefixStore>(options.store_prefix, store);
  try {
    Meeting(c10::make_intrusive<c10d::PrefixStore>("meeting", store), options).run();
  } catch (const c10::Error& e) {
    throw PeerLostError(fmt::format("[comm] rank {} of {}: rank 0 went away while the ranks were meeting ({})",
                                    options.rank, options.world_size,
                                    std::string(e.what_without_backtrace()).substr(0, 200)));
  }
  store->setTimeout(options.timeout);
  return store;
}

}  // namespace aitraining::comm
