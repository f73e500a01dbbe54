// Finds the column of a matrix with the largest product with a vector, with proof; an 8-bit copy excludes most columns.
//
// Column a is scale (coarse + rest) with scale = max |a| / 127 and 8-bit integers `coarse`; the vector g is 2^e (p + rest
// of its own), with 16-bit integers p. Then <a, g> / (scale 2^e) is the integer <coarse, p>, to within
// error |p| + norm |rest of g|, where `error` and `norm` are the norms of the rest and of a / scale. A second code, of
// what the first leaves, times FINE, makes the error FINE times as small. `ScreenedDictionary` says the same with
// floating-point rounding, and why the answers are those of the plain product.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr double FINE = 254;  // half a unit of the first code is 127 units of the second
constexpr double U = 0x1p-52;

template <class T> class Screen : public Screening<T> {
    static constexpr int COLUMNS_PER_COPY = 32;  // columns that are copied together where the matrix has them strided

  public:
    const Dictionary<T> D;  // atoms are columns
    const int width;        // entries of a code; after the last, zeros: no loop has a remainder
    const double max_square;      // upper limit of the squared norm of p, so that no product with a code leaves 32 bits
    Array<int8_t> coarse;
    Array<double> scale, error, norm;
    double smallest_scale = 0, largest_norm = 0;
    bool usable = false;    // whether the bounds hold: for the sizes of the columns, and for sums of as many squares
    Array<int8_t> *fine = nullptr;
    Array<double> *fine_error = nullptr;

    explicit Screen(const Dictionary<T> &D)
        : D(D), width(round_up(D.d, 64)), max_square((2147483647.0 / 127) * (2147483647.0 / 127) / D.d),
          coarse(size_t(D.n) * width), scale(D.n), error(D.n), norm(D.n), copies(strided() ? D.n : 0) {}
    ~Screen() {
        delete fine, delete fine_error;
        for (int j = 0; strided() && j < D.n; ++j) delete[] copies[j];
    }
    bool strided() const { return D.entry_stride != 1; }

    // The first code of columns start to stop.
    void quantise(int64_t start, int64_t stop) override {
        each_column(start, stop, [&](int64_t j, const T *a) {
            scale[j] = double(largest_magnitude(a, D.d)) / 127;
            const double inverse = 1 / scale[j];
            int8_t *code = coarse + j * width;
            double squares = 0, all = 0;
#pragma omp simd reduction(+ : squares, all)
            for (int i = 0; i < D.d; ++i) {
                const double exact = double(a[i]) * inverse, near = nearest(exact);
                code[i] = int8_t(int32_t(near));
                squares += (exact - near) * (exact - near);
                all += exact * exact;
            }
            error[j] = rounded_up(squares), norm[j] = rounded_up(all);
        });
    }

    // The second code of columns start to stop.
    void refine(int64_t start, int64_t stop) override {
        each_column(start, stop, [&](int64_t j, const T *a) {
            const double inverse = 1 / scale[j];
            const int8_t *first = coarse + j * width;
            int8_t *code = *fine + j * width;
            double squares = 0;
#pragma omp simd reduction(+ : squares)
            for (int i = 0; i < D.d; ++i) {
                const double rest = double(a[i]) * inverse - first[i], near = nearest(FINE * rest);
                code[i] = int8_t(int32_t(near));
                squares += (rest - near * (1 / FINE)) * (rest - near * (1 / FINE));
            }
            (*fine_error)[j] = rounded_up(squares);
        });
    }

    // After all columns have their code.
    void measure() override {
        smallest_scale = INFINITY;
        double largest_scale = 0;
        for (int64_t j = 0; j < D.n; ++j) {
            smallest_scale = smaller(smallest_scale, double(scale[j]));
            largest_scale = larger(largest_scale, double(scale[j]));
            largest_norm = larger(largest_norm, scale[j] * norm[j]);
        }
        usable = D.d < 1 << 20 && smallest_scale > 1e-280 && largest_scale < 1e280;
    }

    void begin_refining() override {
        fine_error = new Array<double>(D.n);
        fine = new Array<int8_t>(size_t(D.n) * width);
    }

    // g in 16 bits, so that no sum of products leaves 32 bits; false if it is zero, not finite or out of range. The rest
    // includes the rounding of the plain product, whose number the intervals must contain.
    bool round(const double *g, int16_t *p, Rounded &out) const override {
        const double size = largest_magnitude(g, D.d);
        double sum = 0;
        for (int i = 0; i < D.d; ++i) sum += 0 * g[i];
        if (!(usable && sum == 0 && size > 1e-270 && size < 1e270)) return false;
        for (int exponent = std::ilogb(size) - 13;; ++exponent) {  // |g| / 2^exponent < 2^14
            const double inverse = std::ldexp(1.0, -exponent);
            double squares = 0, rest = 0;
#pragma omp simd reduction(+ : squares, rest)
            for (int i = 0; i < D.d; ++i) {
                const double exact = g[i] * inverse, near = nearest(exact);
                p[i] = int16_t(int32_t(near));
                squares += near * near;
                rest += (exact - near) * (exact - near);
            }
            if (squares >= max_square) continue;
            const double slack = 1 + (D.d + 8) * U;
            out.p = p;
            out.exponent = exponent;
            out.length = std::sqrt(squares) * slack;
            out.rest = std::sqrt(rest) * slack + 1e-12;
            const double unit = std::ldexp(smallest_scale, exponent);
            const double most = std::ldexp(largest_norm, exponent) * (out.length + std::sqrt(double(D.d)));
            out.rest += (D.d + 32) * double(EPS<T>) * (out.length + out.rest);
            return unit > 1e4 * D.d * TINY && most < 1e-2 * HUGE;
        }
    }

    // Intervals of |<a, g>| (or of -<a, g>), in units of 2^exponent, for some columns; the largest lower end. They
    // contain the number that the plain product computes.
    double enclose(const Rounded &g, Columns some, bool use_fine, bool is_signed, double *lower, double *upper) const override {
        constexpr int N = LANES<int16_t>, COLUMNS_PER_PASS = 4;
        double best = -INFINITY;
        for (int64_t k = some.start; k < some.stop; k += COLUMNS_PER_PASS) {
            int64_t j[COLUMNS_PER_PASS];
            double merits[COLUMNS_PER_PASS];
            for (int r = 0; r < COLUMNS_PER_PASS; ++r) {
                const int64_t at = smaller(k + r, some.stop - 1);
                j[r] = some.which ? some.which[at] : at;
                merits[r] = 0;
            }
            for (int pass = 0; pass < 1 + use_fine; ++pass) {
                const int8_t *codes = pass == 0 ? coarse : *fine;
                Vec<int32_t> sums[COLUMNS_PER_PASS][2] = {};
                for (int i = 0; i < width; i += 2 * N)
                    for (int r = 0; r < COLUMNS_PER_PASS; ++r) {
                        const int8_t *row = codes + j[r] * width + i;
                        __builtin_prefetch(row + COLUMNS_PER_PASS * width, 0, 2);
                        for (int v = 0; v < 2; ++v)
                            sums[r][v] = add_products(sums[r][v], widened(row + v * N), load(g.p + i + v * N));
                    }
                Vec<int32_t> both[COLUMNS_PER_PASS];
                for (int r = 0; r < COLUMNS_PER_PASS; ++r) both[r] = sums[r][0] + sums[r][1];
                const auto lanes = std::make_integer_sequence<int, LANES<int32_t>>();
                both[0] = folded<1, int32_t>(both[0], both[1], lanes), both[2] = folded<1, int32_t>(both[2], both[3], lanes);
                const auto plus = [](auto x, auto y) { return x + y; };
                const Vec<int32_t, 16> total = lower_part<int32_t>(folded<2, int32_t>(both[0], both[2], lanes), plus);
                for (int r = 0; r < COLUMNS_PER_PASS; ++r)
                    merits[r] += pass == 0 ? double(total[r]) : total[r] / FINE;
            }
            for (int r = 0; r < COLUMNS_PER_PASS && k + r < some.stop; ++r) {
                const double merit = is_signed ? std::fabs(merits[r]) : -merits[r];
                const double radius = (use_fine ? (*fine_error)[j[r]] : error[j[r]]) * g.length + norm[j[r]] * g.rest + 1e-3;
                lower[k + r] = (merit - radius) * scale[j[r]];
                upper[k + r] = (merit + radius) * scale[j[r]];
                best = larger(best, lower[k + r]);
            }
        }
        return best;
    }

    // Writes the columns whose upper end reaches the threshold, and fetches them. Returns their number; where that is more
    // than `most`, nothing is fetched.
    int64_t contenders(const double *upper, double threshold, int64_t most, int64_t *which) const {
        int64_t count = 0;
        for (int64_t j = 0; j < D.n && count <= most; ++j)
            if (upper[j] >= threshold) {
                if (count < most) which[count] = j;
                ++count;
            }
        if (count <= most) fetch(which, count);
        return count;
    }

    // Strided columns are copied when they are first needed: they are needed again.
    void fetch(const int64_t *which, int64_t count) const {
        if (!strided()) return;
        Array<int64_t> fresh(count);
        int64_t fresh_count = 0;
        for (int64_t k = 0; k < count; ++k)
            if (!copies[which[k]]) copies[which[k]] = new T[D.d], fresh[fresh_count++] = which[k];
        for (int i = 0; i < D.d && fresh_count > 0; ++i)  // by rows, in which neighbours are near
            for (int64_t k = 0; k < fresh_count; ++k) copies[fresh[k]][i] = D.atom(fresh[k])[i * D.entry_stride];
    }

    // The entries of a column that was fetched.
    const T *column(int64_t j) const { return strided() ? copies[j] : D.atom(j); }

    // The column of the largest merit among those whose upper end reaches the threshold; -1 where rounding leaves a doubt, or
    // more than `most` are `tried`.
    int64_t winner(const double *g, const double *upper, double threshold, bool is_signed, int64_t most, double *value,
                   int64_t *tried) override {
        int64_t found = -1;
        double best = -INFINITY, doubt = 0, others = -INFINITY;
        Array<int64_t> which(most);
        *tried = contenders(upper, threshold, most, which);
        for (int64_t k = 0; k < *tried; ++k) {
            if (*tried > most) return -1;
            const int64_t j = which[k];
            double size, product = measured(j, g, size);
            const double merit = is_signed ? std::fabs(product) : -product;
            const double radius = 2 * (D.d + 32) * double(EPS<T>) * size + D.d * TINY;
            if (merit > best) {
                others = larger(others, best + doubt);
                found = j, *value = product, best = merit, doubt = radius;
            } else
                others = larger(others, merit + radius);
        }
        return best - doubt > others && !(is_signed && best <= doubt) ? found : -1;
    }

    // <a, g> and <|a|, |g|> for some columns.
    void products(const double *g, Columns some, double *value, double *size) override {
        fetch(some.which + some.start, some.stop - some.start);
        for (int64_t k = some.start; k < some.stop; ++k) value[k] = measured(some.which[k], g, size[k]);
    }

  private:
    static constexpr double TINY = sizeof(T) == 8 ? 0x1p-1022 : 0x1p-126, HUGE = sizeof(T) == 8 ? 0x1p1023 : 0x1p127;

    mutable Array<T *> copies;  // of strided columns

    double rounded_up(double squares) const { return std::sqrt(squares) * (1 + (D.d + 8) * U) + 512 * U * std::sqrt(double(D.d)); }

    // <a, g> and <|a|, |g|> in float64.
    double measured(int64_t j, const double *g, double &size) const {
        double sum = 0, absolute = 0;
        const T *a = column(j);
#pragma omp simd reduction(+ : sum, absolute)
        for (int i = 0; i < D.d; ++i) {
            const double product = double(a[i]) * g[i];
            sum += product;
            absolute += std::fabs(product);
        }
        size = absolute;
        return sum;
    }

    // work(j, entries of column j) for some columns; strided ones are copied, COLUMNS_PER_COPY of them by rows.
    template <class Work> void each_column(int64_t start, int64_t stop, Work work) const {
        if (!strided()) {
            for (int64_t j = start; j < stop; ++j) work(j, D.atom(j));
            return;
        }
        const size_t row = round_up(D.d, 16) + 16;  // begins at a cache line, each at another one of the cache
        Array<T> some(COLUMNS_PER_COPY * row);
        for (int64_t first = start; first < stop; first += COLUMNS_PER_COPY) {
            const int count = int(smaller(int64_t(COLUMNS_PER_COPY), stop - first));
            int i = 0;
            for (constexpr int N = LANES<T>; D.atom_stride == 1 && count == COLUMNS_PER_COPY && i + N <= D.d; i += N)
                for (int k = 0; k < COLUMNS_PER_COPY; k += N) {
                    Vec<T> block[N];
                    for (int r = 0; r < N; ++r) block[r] = load(D.atom(first + k) + (i + r) * D.entry_stride);
                    transpose<T>(block);
                    for (int r = 0; r < N; ++r) store(some + (k + r) * row + i, block[r]);
                }
            for (; i < D.d; ++i)
                for (int k = 0; k < count; ++k) some[k * row + i] = D.atom(first + k)[i * D.entry_stride];
            for (int k = 0; k < count; ++k) work(first + k, some + k * row);
        }
    }
};

}  // namespace
