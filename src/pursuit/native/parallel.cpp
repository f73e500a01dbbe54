// Threads of the process that share the pieces of a task: kernels.h says how they are asked.
//
// Helpers spin for a while after a task, as the next one often follows within microseconds, and then sleep. The caller
// does pieces, too, and waits only for pieces that a helper has begun: a helper that does not get a processor, on a
// busy machine, holds nobody up.
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include "kernels.h"
#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace {

constexpr int SPINS = 10'000;  // of a helper before it sleeps

// Tells the processor that this thread waits.
void pause() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

void spin(int count) { count > SPINS ? std::this_thread::yield() : pause(); }

#if defined(_WIN32)
int process_number() { return 0; }  // there is no fork
#else
int process_number() { return int(getpid()); }
#endif

struct Pool {
    const int process = process_number();  // threads do not survive a fork
    std::mutex busy;                       // held by whoever has a task
    std::atomic<uint64_t> open{0};         // number of the task in the upper half, pieces that nobody took in the lower
    std::atomic<int> done{0}, allowed{0};
    void (*work)(void *, int) = nullptr;
    void *context = nullptr;
    std::exception_ptr problem;  // of the task
    std::mutex lock;             // of `problem`
    int helpers = 0;
    uint32_t tasks = 0;

    // Whether a piece was there to be done.
    bool do_piece() {
        uint64_t now = open.load(std::memory_order_acquire);
        while (uint32_t(now) != 0)
            if (open.compare_exchange_weak(now, now - 1, std::memory_order_acq_rel)) {
                try {
                    work(context, int(uint32_t(now)) - 1);
                } catch (...) {
                    std::lock_guard<std::mutex> hold(lock);
                    problem = std::current_exception();
                }
                done.fetch_add(1, std::memory_order_release);
                return true;
            }
        return false;
    }

    void help(int number) {
        for (int spins = 0;; ++spins) {
            const uint64_t now = open.load(std::memory_order_acquire);
            const bool wanted = number < allowed.load(std::memory_order_relaxed);
            if (wanted && do_piece()) spins = 0;
            else if (wanted && spins < SPINS) spin(spins);
            else open.wait(now), spins = 0;
        }
    }

    void run(int threads, int pieces) {
        try {
            for (; helpers < threads - 1; ++helpers) std::thread(&Pool::help, this, helpers).detach();
        } catch (const std::system_error &) {  // no more threads: helpers are welcome, not needed
        }
        done = 0, allowed = threads - 1, problem = nullptr;
        open.store(uint64_t(++tasks) << 32 | uint32_t(pieces), std::memory_order_release);
        open.notify_all();
        while (do_piece()) {}
        for (int spins = 0; done.load(std::memory_order_acquire) < pieces;) spin(++spins);
        if (problem) std::rethrow_exception(problem);
    }
};

Pool &pool() {
    static std::atomic<Pool *> current{nullptr};
    Pool *found = current.load();
    while (!found || found->process != process_number()) {
        Pool *fresh = new Pool;  // never deleted: its threads outlive everything
        if (current.compare_exchange_strong(found, fresh)) return *fresh;
        delete fresh;
    }
    return *found;
}

}  // namespace

void in_parallel(int threads, int pieces, void (*work)(void *, int), void *context) {
    Pool &all = pool();
    std::unique_lock<std::mutex> mine(all.busy, std::defer_lock);
    if (threads > 1 && pieces > 1 && mine.try_lock()) {
        all.work = work, all.context = context;
        return all.run(threads, pieces);
    }
    for (int piece = 0; piece < pieces; ++piece) work(context, piece);
}
