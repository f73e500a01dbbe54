// Vectors of the processor's width, and the few operations on them that need intrinsics.
//
// This header and everything that includes it is compiled once for each processor level (see CMakeLists.txt). All of it
// is in an unnamed namespace, and no template of the standard library is used: the linker keeps one copy of such a
// template for all levels, and that copy could need a processor that is newer than the user's.
#pragma once
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if __FLT_EVAL_METHOD__ != 0
#error "the proofs of the kernels need float and double arithmetic as it is stored: on i686, -msse2 -mfpmath=sse"
#endif

namespace {

#if defined(__AVX512BW__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

template <class T, int BYTES> struct VectorType {
    typedef T type __attribute__((vector_size(BYTES)));
};
template <class T, int BYTES = VECTOR_BYTES> using Vec = typename VectorType<T, BYTES>::type;
template <class T> constexpr int LANES = VECTOR_BYTES / int(sizeof(T));
template <class T> constexpr T EPS = sizeof(T) == 8 ? T(0x1p-52) : T(0x1p-23);

template <class T> inline Vec<T> load(const T *from) {
    Vec<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}
template <class T> inline void store(T *to, Vec<T> v) { std::memcpy(to, &v, sizeof v); }
template <class T> inline Vec<T> splat(T x) { return x - Vec<T>{}; }
template <class V> inline V magnitude(V x) { return x < 0 ? -x : x; }
template <class V> constexpr V larger(V x, V y) { return x > y ? x : y; }
template <class V> constexpr V smaller(V x, V y) { return x < y ? x : y; }

// The vector of each(0), each(1), ... (Assigning entries one by one goes through memory, and is slow.)
template <class T, class Each, int... K> inline Vec<T> collected(Each each, std::integer_sequence<int, K...>) {
    return Vec<T>{T(each(K))...};
}
template <class T, class Each> inline Vec<T> collected(Each each) {
    return collected<T>(each, std::make_integer_sequence<int, LANES<T>>());
}

template <class T> inline Vec<T> square_root(Vec<T> v) {
    return collected<T>([&](int k) { return std::sqrt(v[k]); });
}

// The nearest integer to a number (or to each of a vector) that is small beside 2^52, or 2^23 in float.
inline double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }
inline float nearest(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }
inline Vec<double> nearest(Vec<double> x) { return (x + 0x1.8p52) - 0x1.8p52; }
inline Vec<float> nearest(Vec<float> x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

// x y / 2^15, rounded.
inline Vec<int16_t> high_product(Vec<int16_t> x, Vec<int16_t> y) {
#if defined(__AVX512BW__)
    return (Vec<int16_t>)_mm512_mulhrs_epi16((__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return (Vec<int16_t>)_mm256_mulhrs_epi16((__m256i)x, (__m256i)y);
#elif defined(__SSSE3__)
    return (Vec<int16_t>)_mm_mulhrs_epi16((__m128i)x, (__m128i)y);
#elif defined(__ARM_NEON)
    return (Vec<int16_t>)vqrdmulhq_s16((int16x8_t)x, (int16x8_t)y);
#else
    for (int k = 0; k < LANES<int16_t>; ++k) x[k] = int16_t((x[k] * y[k] + (1 << 14)) >> 15);
    return x;
#endif
}

// sum + x y, where products of two neighbours are added to one another.
inline Vec<int32_t> add_products(Vec<int32_t> sum, Vec<int16_t> x, Vec<int16_t> y) {
#if defined(__AVX512VNNI__)
    return (Vec<int32_t>)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x, (__m512i)y);
#elif defined(__AVX2__)
    return sum + (Vec<int32_t>)_mm256_madd_epi16((__m256i)x, (__m256i)y);
#elif defined(__SSE2__)
    return sum + (Vec<int32_t>)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
    for (int k = 0; k < LANES<int32_t>; ++k) sum[k] += x[2 * k] * y[2 * k] + x[2 * k + 1] * y[2 * k + 1];
    return sum;
#endif
}

// 8-bit integers as 16-bit ones.
inline Vec<int16_t> widened(const int8_t *from) {
#if defined(__AVX512BW__)
    return (Vec<int16_t>)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)from));
#elif defined(__AVX2__)
    return (Vec<int16_t>)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)from));
#else
    Vec<int8_t, VECTOR_BYTES / 2> bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, Vec<int16_t>);
#endif
}

// One bit for each x > low.
inline uint64_t bits_above(Vec<int16_t> x, Vec<int16_t> low) {
#if defined(__AVX512BW__)
    return _mm512_cmpgt_epi16_mask((__m512i)x, (__m512i)low);
#elif defined(__AVX2__)
    __m256i is = (__m256i)(x > low);
    return uint32_t(_mm_movemask_epi8(_mm_packs_epi16(_mm256_castsi256_si128(is), _mm256_extracti128_si256(is, 1))));
#elif defined(__SSE2__)
    return uint32_t(_mm_movemask_epi8(_mm_packs_epi16((__m128i)(x > low), _mm_setzero_si128())));
#else
    uint64_t found = 0;
    for (int k = 0; k < LANES<int16_t>; ++k) found |= uint64_t(x[k] > low[k]) << k;
    return found;
#endif
}

// The same for integers of 32 or 64 bits.
template <class V> inline uint64_t bits_above(V x, V low) {
    constexpr bool in_32_bits = sizeof(x[0]) == 4;
#if defined(__AVX512BW__)
    const __m512i a = (__m512i)x, b = (__m512i)low;
    return in_32_bits ? _mm512_cmpgt_epi32_mask(a, b) : _mm512_cmpgt_epi64_mask(a, b);
#elif defined(__AVX2__)
    return in_32_bits ? _mm256_movemask_ps((__m256)(x > low)) : _mm256_movemask_pd((__m256d)(x > low));
#elif defined(__SSE2__)
    return in_32_bits ? _mm_movemask_ps((__m128)(x > low)) : _mm_movemask_pd((__m128d)(x > low));
#else
    uint64_t found = 0;
    for (int k = 0; k < VECTOR_BYTES / (in_32_bits ? 4 : 8); ++k) found |= uint64_t(x[k] > low[k]) << k;
    return found;
#endif
}

// Entries that lie one after the other, of which somebody else is the owner. Builds without NDEBUG check every index.
template <class T> class Span {
    T *entries = nullptr;
    size_t count = 0;

  public:
    Span() = default;
    Span(T *entries, size_t count) : entries(entries), count(count) {}
    size_t size() const { return count; }
    T *data() const { return entries; }
    operator T *() const { return entries; }
    template <class Index> T &operator[](Index i) const { return assert(size_t(i) < count), entries[i]; }
    template <class Index> T *operator+(Index i) const { return assert(size_t(i) <= count), entries + i; }
    Span part(size_t first, size_t length) const {
        return assert(first + length <= count), Span(entries + first, length);
    }
};

// An array of zeros that begins at a cache line.
template <class T> class Array {
    void *memory = nullptr;
    Span<T> all;

  public:
    explicit Array(size_t count = 0) { allocate(count); }
    Array(const Array &) = delete;
    ~Array() { std::free(memory); }
    void allocate(size_t count) {
        std::free(memory);
        if (!(memory = std::calloc(count * sizeof(T) + 128, 1))) throw std::bad_alloc();
        all = {reinterpret_cast<T *>((reinterpret_cast<uintptr_t>(memory) + 63) & ~uintptr_t(63)), count};
    }
    size_t size() const { return all.size(); }
    T *data() { return all; }
    const T *data() const { return all; }
    operator T *() { return all; }
    operator const T *() const { return all; }
    template <class Index> T &operator[](Index i) { return all[i]; }
    template <class Index> const T &operator[](Index i) const { return all[i]; }
    template <class Index> T *operator+(Index i) { return all + i; }
    template <class Index> const T *operator+(Index i) const { return all + i; }
    Span<T> part(size_t first, size_t length) { return all.part(first, length); }
};

// Objects that are made one after the other and end together, also where memory ends before all are made.
template <class T> class Objects {
    Array<T *> made;
    size_t count = 0;

  public:
    explicit Objects(size_t most) : made(most) {}
    ~Objects() {
        while (count > 0) delete made[--count];
    }
    template <class... Arguments> T &add(Arguments &&...arguments) {
        made[count] = new T(arguments...);
        return *made[count++];
    }
    size_t size() const { return count; }
    T &operator[](size_t i) { return *made[i]; }
};

template <class V> inline void swap(V &p, V &q) {
    const V value = p;
    p = q, q = value;
}

inline int round_up(int n, int step) { return (n + step - 1) / step * step; }

// The result of an operation on all entries of a vector, by halves. (Written as a loop over entries, compilers make
// scalar code of it, which takes longer than the search it ends.)
template <class T, int BYTES = VECTOR_BYTES, class Operation>
inline Vec<T, 16> lower_part(Vec<T, BYTES> v, Operation operation) {
    if constexpr (BYTES == 16) return v;
    else {
        Vec<T, BYTES / 2> halves[2];
        std::memcpy(halves, &v, BYTES);
        return lower_part<T, BYTES / 2>(operation(halves[0], halves[1]), operation);
    }
}
template <class T, class Operation> inline T reduced(Vec<T> v, Operation operation) {
    const Vec<T, 16> part = lower_part<T>(v, operation);
    T each[16 / sizeof(T)];
    std::memcpy(each, &part, 16);
    for (int half = 8 / int(sizeof(T)); half > 0; half /= 2)
        for (int k = 0; k < half; ++k) each[k] = operation(each[k], each[k + half]);
    return each[0];
}
template <class T> inline T total(Vec<T> v) {
    return reduced<T>(v, [](auto x, auto y) { return decltype(x)(x + y); });
}
template <class T> inline T largest(Vec<T> v) {
    return reduced<T>(v, [](auto x, auto y) { return larger(x, y); });
}
#if defined(__SSE4_1__)
template <> inline int16_t largest<int16_t>(Vec<int16_t> v) {  // of numbers that are not negative
    Vec<int16_t, 16> part = lower_part<int16_t>(v, [](auto x, auto y) { return larger(x, y); });
    const __m128i top = _mm_set1_epi16(32767);
    return int16_t(32767 - _mm_extract_epi16(_mm_minpos_epu16(_mm_sub_epi16(top, (__m128i)part)), 0));
}
#endif

// <u, v>.
template <class T> inline T dot(const T *u, const T *v, int count) {
    constexpr int N = LANES<T>;
    Vec<T> sums[2] = {};
    int i = 0;
    for (; i + 2 * N <= count; i += 2 * N)
        for (int k = 0; k < 2; ++k) sums[k] += load(u + i + k * N) * load(v + i + k * N);
    T sum = total<T>(sums[0] + sums[1]);
    for (; i < count; ++i) sum += u[i] * v[i];
    return sum;
}

// Sums of neighbours that are STEP apart, those of a and b interleaved.
template <int STEP, class T, int... K> inline Vec<T> folded(Vec<T> a, Vec<T> b, std::integer_sequence<int, K...>) {
    return __builtin_shufflevector(a, b, ((K & ~STEP) + (K & STEP ? LANES<T> : 0))...) +
           __builtin_shufflevector(a, b, ((K | STEP) + (K & STEP ? LANES<T> : 0))...);
}

// A block of LANES vectors is transposed: halves that are STEP apart change places.
template <int STEP, class T, int... K> inline void exchange(Vec<T> &a, Vec<T> &b, std::integer_sequence<int, K...>) {
    const Vec<T> first = a;
    a = __builtin_shufflevector(first, b, (K & STEP ? (K & ~STEP) + LANES<T> : K)...);
    b = __builtin_shufflevector(first, b, (K & STEP ? K + LANES<T> : K + STEP)...);
}
template <class T, int STEP = 1> inline void transpose(Vec<T> *block) {
    if constexpr (STEP < LANES<T>) {
        for (int k = 0; k < LANES<T>; ++k)
            if (!(k & STEP)) exchange<STEP, T>(block[k], block[k + STEP], std::make_integer_sequence<int, LANES<T>>());
        transpose<T, 2 * STEP>(block);
    }
}

// <u, v>_w, the sum of w u v in type T; without w, <u, v>.
template <class T, class W, class U, class V> inline T inner(const W *w, const U *u, const V *v, int count) {
    if constexpr (std::is_same_v<U, T> && std::is_same_v<V, T>)
        if (!w) return dot(u, v, count);
    T sum = 0;
    if (w) {
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < count; ++i) sum += T(w[i]) * T(u[i]) * T(v[i]);
    } else {
#pragma omp simd reduction(+ : sum)
        for (int i = 0; i < count; ++i) sum += T(u[i]) * T(v[i]);
    }
    return sum;
}

// to += factor row.
template <class T, class U = T> inline void add(T *to, T factor, const std::type_identity_t<U> *row, int count) {
#pragma omp simd
    for (int i = 0; i < count; ++i) to[i] += factor * T(row[i]);
}

// The largest magnitude among some numbers.
template <class T> inline T largest_magnitude(const T *v, int count) {
    constexpr int N = LANES<T>;
    Vec<T> top{};
    int i = 0;
    for (; i + N <= count; i += N) top = larger(top, magnitude(load(v + i)));
    T found = largest<T>(top);
    for (; i < count; ++i) found = larger(found, T(std::fabs(v[i])));
    return found;
}

// out = scale first - sum_i factors_i rows_i, for vectors of `count` entries; a block of each at a time, in registers.
template <class T, class Row>
inline void combine(T scale, const T *first, const T *factors, Row row, int terms, int count, T *out) {
    using U = std::remove_const_t<std::remove_pointer_t<decltype(row(0))>>;
    constexpr int N = LANES<T>, BLOCK = 8 * N;
    int k = 0;
    if constexpr (std::is_same_v<T, U>)
        for (; k + BLOCK <= count; k += BLOCK) {
            Vec<T> sums[8];
            for (int v = 0; v < 8; ++v) sums[v] = first ? splat(scale) * load(first + k + v * N) : Vec<T>{};
            for (int i = 0; i < terms; ++i) {
                const T *from = row(i) + k;
                const Vec<T> factor = splat(factors[i]);
                for (int v = 0; v < 8; ++v) sums[v] -= factor * load(from + v * N);
            }
            for (int v = 0; v < 8; ++v) store(out + k + v * N, sums[v]);
        }
    if (k == count) return;
    for (int t = k; t < count; ++t) out[t] = first ? scale * first[t] : T(0);
    for (int i = 0; i < terms; ++i) add<T, U>(out + k, -factors[i], row(i) + k, count - k);
}

}  // namespace
