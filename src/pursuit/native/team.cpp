#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#include "kernels.h"

namespace {

constexpr int SPINS = 2000;        // before a thread that waits lets others run
constexpr int PATIENCE = 200'000;  // spins after which a helper counts as late: another program has its processor

void wait_a_moment(int spins) {
    if (spins > SPINS) std::this_thread::yield();
#if defined(__x86_64__)
    else __builtin_ia32_pause();
#endif
}

}  // namespace

struct Team::Shared {
    std::vector<std::thread> helpers;
    std::atomic<uint64_t> open{0};  // number of the task in the upper half, pieces that nobody took in the lower
    std::atomic<int> done{0};
    std::atomic<bool> over{false};
    void (*work)(void *, int) = nullptr;
    void *context = nullptr;
    std::exception_ptr problem;
    std::mutex lock;
    int64_t tasks = 0, late = 0;

    // One piece of the present task, if there is one left.
    bool do_piece() {
        uint64_t now = open.load(std::memory_order_acquire);
        if (uint32_t(now) == 0 || !open.compare_exchange_strong(now, now - 1, std::memory_order_acq_rel)) return uint32_t(now) != 0;
        try {
            work(context, int(uint32_t(now)) - 1);
        } catch (...) {
            std::lock_guard<std::mutex> hold(lock);
            problem = std::current_exception();
        }
        done.fetch_add(1, std::memory_order_release);
        return true;
    }
};

Team::Team(int threads) : shared(new Shared) {
    try {
        for (int i = 1; i < threads; ++i)
            shared->helpers.emplace_back([s = shared] {
                for (int spins = 0; !s->over.load(std::memory_order_relaxed); spins = s->do_piece() ? 0 : spins + 1)
                    wait_a_moment(spins);
            });
    } catch (const std::system_error &) {  // no more threads: helpers are welcome, not needed
    }
}

Team::~Team() {
    shared->over = true;
    for (auto &helper : shared->helpers) helper.join();
    delete shared;
}

void Team::run(int pieces, void (*work)(void *, int), void *context) {
    Shared &s = *shared;
    if (s.helpers.empty() || s.over) {
        for (int piece = 0; piece < pieces; ++piece) work(context, piece);
        return;
    }
    s.work = work, s.context = context;
    s.done = 0;
    s.open.store(uint64_t(++s.tasks) << 32 | uint32_t(pieces), std::memory_order_release);
    while (s.do_piece()) {}
    int spins = 0;
    while (s.done.load(std::memory_order_acquire) < pieces) wait_a_moment(++spins);
    s.late += spins > PATIENCE;
    if (s.late > 2 + s.tasks / 16) s.over = true;  // on a busy machine, one thread is faster
    if (s.problem) std::rethrow_exception(s.problem);
}
