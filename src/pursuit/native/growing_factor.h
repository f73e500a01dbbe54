// The Cholesky factor of the Gram matrix of some columns, which enter a few at a time and leave one by one.
#pragma once
#include "simd.h"

namespace {

constexpr int FEW = 4;  // columns that are multiplied, or enter, together

// The products of each of a few columns with each of a few others.
inline void products(const double *const *left, const double *const *right, int n, double *out) {
    constexpr int N = LANES<double>;
    Vec<double> sums[FEW * FEW] = {};
    int i = 0;
    for (; i + N <= n; i += N)
        for (int a = 0; a < FEW; ++a) {
            const Vec<double> each = load(left[a] + i);
            for (int b = 0; b < FEW; ++b) sums[FEW * a + b] += each * load(right[b] + i);
        }
    for (int k = 0; k < FEW * FEW; ++k) {
        out[k] = total<double>(sums[k]);
        for (int rest = i; rest < n; ++rest) out[k] += left[k / FEW][rest] * right[k % FEW][rest];
    }
}

// The lower triangular factor of a Gram matrix whose columns enter and leave.
class GrowingFactor {
    static constexpr double LEAST = 1e-11;  // the distance of a column to the others, squared, beside its square
    Array<double> memory[2];
    int room = 0, now = 0;

  public:
    int size = 0;
    double *column(int c) { return memory[now] + int64_t(c) * room; }

    void reserve(int wanted) {
        if (wanted <= room) return;
        const int next = round_up(wanted + wanted / 2 + 64, 8);
        memory[1 - now].allocate(size_t(next) * next);
        for (int c = 0; c < size; ++c)
            std::memcpy(memory[1 - now] + int64_t(c) * next + c, column(c) + c, (size - c) * sizeof(double));
        memory[now].allocate(0);
        room = next, now = 1 - now;
    }

    // z = L^-1 z, for a few z.
    void reduce(double *const *z) {
        double *p = z[0], *q = z[1], *r = z[2], *s = z[3];
        for (int c = 0; c < size; ++c) {
            const double *l = column(c);
            double f[FEW];
            for (int a = 0; a < FEW; ++a) f[a] = z[a][c] /= l[c];
#pragma omp simd
            for (int i = c + 1; i < size; ++i)
                p[i] -= f[0] * l[i], q[i] -= f[1] * l[i], r[i] -= f[2] * l[i], s[i] -= f[3] * l[i];
        }
    }

    // A column enters, of whose products z with the others the first ones are reduced; false where it depends on them.
    bool append(double *z, int reduced, double square) {
        double left = square;
        for (int c = 0; c < size; ++c) {
            if (c >= reduced) {
                for (int k = 0; k < c; ++k) z[c] -= column(k)[c] * z[k];
                z[c] /= column(c)[c];
            }
            left -= z[c] * z[c];
        }
        if (!(left > LEAST * square)) return false;
        for (int c = 0; c < size; ++c) column(c)[size] = z[c];
        column(size)[size] = std::sqrt(left);
        ++size;
        return true;
    }

    // Column j leaves: what it has below the diagonal is rotated into the columns behind it.
    void remove(int j, double *work) {
        std::memcpy(work, column(j), size * sizeof(double));
        for (int c = 0; c < j; ++c) std::memmove(column(c) + j, column(c) + j + 1, (size - j - 1) * sizeof(double));
        for (int c = j; c + 1 < size; ++c) {
            double *to = column(c);
            const double *from = column(c + 1);
            const double length = std::hypot(from[c + 1], work[c + 1]);
            const double cosine = from[c + 1] / length, sine = work[c + 1] / length;
            to[c] = length;
#pragma omp simd
            for (int i = c + 2; i < size; ++i) {
                const double x = from[i], v = work[i];
                to[i - 1] = cosine * x + sine * v, work[i] = cosine * v - sine * x;
            }
        }
        --size;
    }

    // v = (L L')^-1 v.
    void solve(double *v) {
        for (int c = 0; c < size; ++c) {
            v[c] /= column(c)[c];
            add(v + c + 1, -v[c], column(c) + c + 1, size - c - 1);
        }
        for (int c = size - 1; c >= 0; --c)
            v[c] = (v[c] - dot(v + c + 1, column(c) + c + 1, size - c - 1)) / column(c)[c];
    }
};

}  // namespace
