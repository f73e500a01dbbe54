// Runs the kernels of one level without Python, on a problem from standard input: tools/cross.py compares what it writes
// with what the module of this machine finds. Before that, memory ends at every allocation once, and nothing may leak.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>
#include "kernels.h"

namespace levels {
extern const Levels LEVEL;
}

static int alive = 0, left = -1;  // objects; allocations until memory ends, if not negative

void *operator new(size_t size) {
    if (left == 0) throw std::bad_alloc();
    left -= left > 0;
    ++alive;
    return std::malloc(size);
}
void operator delete(void *memory) noexcept { alive -= memory != nullptr, std::free(memory); }
void operator delete(void *memory, size_t) noexcept { operator delete(memory); }

Kernel::~Kernel() = default;
void check_interrupt(const int32_t *) {}

template <class T> std::vector<T> read(size_t count) {
    std::vector<T> out(count);
    if (std::fread(out.data(), sizeof(T), count, stdin) != count) std::exit(2);
    return out;
}

template <class T> struct Problem {
    std::vector<int32_t> size = read<int32_t>(5);
    int d = size[0], n = size[1], count = size[2], width = size[3], limit = size[4];
    std::vector<T> atoms = read<T>(size_t(n) * d), norms = read<T>(n), gram = read<T>(size_t(n) * n);
    std::vector<T> y = read<T>(size_t(count) * d), weights = read<T>(size_t(count) * d), tols = read<T>(count);
    std::vector<T> penalties = read<T>(count), x = std::vector<T>(size_t(count) * width);
    std::vector<int64_t> limits = std::vector<int64_t>(count, limit), counts = std::vector<int64_t>(count, UNSOLVED);
    std::vector<int32_t> found = std::vector<int32_t>(size_t(count) * width);
    int32_t stop = 0;
    Dictionary<T> D{d, n, atoms.data(), d, 1, norms.data(), gram.data()};

    Tile<T> tile(bool weighted) {
        return {count,
                width,
                y.data(),
                weighted ? weights.data() : nullptr,
                limits.data(),
                tols.data(),
                penalties.data(),
                found.data(),
                x.data(),
                counts.data(),
                &stop};
    }
    std::vector<T> products(const T *vectors, int64_t rows) const {
        std::vector<T> out(size_t(rows) * n);
        for (int64_t r = 0; r < rows; ++r)
            for (int j = 0; j < n; ++j)
                for (int i = 0; i < d; ++i) out[r * n + j] += atoms[size_t(j) * d + i] * vectors[r * d + i];
        return out;
    }
    void write() {
        std::fwrite(found.data(), sizeof(int32_t), found.size(), stdout);
        std::fwrite(x.data(), sizeof(T), x.size(), stdout);
        std::fwrite(counts.data(), sizeof(int64_t), counts.size(), stdout);
        found.assign(found.size(), 0), x.assign(x.size(), 0), counts.assign(counts.size(), UNSOLVED);
    }
};

template <class T> void survive_the_end_of_memory(const Level<T> &level, Problem<T> &P) {
    for (Method method : {Method::ols, Method::lasso})
        for (int allocations = 0;; ++allocations) {
            const int before = alive;
            left = allocations;
            try {
                std::unique_ptr<DirectPursuits<T>>(level.direct(P.D, method, P.tile(false), P.norms.data(), 0));
                left = -1;
            } catch (const std::bad_alloc &) { left = -2; }
            if (alive != before) std::exit(3);
            if (left == -1) break;
        }
}

template <class T> void run(const Level<T> &level) {
    Problem<T> P;
    survive_the_end_of_memory(level, P);
    const auto fast = [&](Method method, Search search) {
        std::unique_ptr<FastPursuits<T>>(level.fast(P.D, method, search))->solve(P.tile(false));
        P.write();
    };
    fast(Method::omp, Search::int16), fast(Method::omp, Search::float32), fast(Method::ols, Search::float32);
    for (int k = 0; k < 6; ++k) {
        level.one_by_one(P.D, Method(k), P.tile(false), P.products(P.y.data(), P.count).data());
        P.write();
    }
    for (int k = 0; k < 6; ++k) {
        std::unique_ptr<DirectPursuits<T>> all(level.direct(P.D, Method(k), P.tile(true), P.norms.data(), 0));
        std::vector<T> vectors(size_t(2) * P.count * P.d);
        while (const int64_t rows = all->vectors(vectors.data())) all->advance(P.products(vectors.data(), rows).data());
        P.write();
    }
    std::unique_ptr<Screening<T>> screen(level.screen(P.D, 1));
    screen->solve_alone(Method::omp, P.tile(false), 2);
    P.write();
}

int main() {
    run(levels::LEVEL.float64);
    run(levels::LEVEL.float32);
}
