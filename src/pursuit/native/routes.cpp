// All-or-nothing assignment: the demand of each origin over its shortest routes, many origins at once.
//
// Origins are cut into pieces whose number does not depend on the threads, and the loads of the pieces are added in
// order, so that the sums are the same on every machine.
#include <algorithm>
#include <limits>
#include <vector>
#include "kernels.h"

namespace {

constexpr int PIECES = 32;
constexpr int32_t NONE = -1;

// Nodes in order of distance: a heap with four children a node, which knows where each node is.
struct Heap {
    std::vector<double> distance;
    std::vector<int32_t> node, place;
    int32_t size = 0;

    explicit Heap(int64_t nodes) : distance(nodes), node(nodes), place(nodes, NONE) {}

    void set(int32_t i, double d, int32_t v) { distance[i] = d, node[i] = v, place[v] = i; }

    // Enters a node, or lowers its distance.
    void put(double d, int32_t v) {
        int32_t i = place[v] == NONE ? size++ : place[v];
        for (; i > 0 && distance[(i - 1) / 4] > d; i = (i - 1) / 4) set(i, distance[(i - 1) / 4], node[(i - 1) / 4]);
        set(i, d, v);
    }

    int32_t pop() {
        const int32_t top = node[0], v = node[--size];
        const double d = distance[size];
        int32_t i = 0;
        for (int32_t child = 1; child < size; child = 4 * i + 1) {
            int32_t best = child;
            for (int32_t j = child + 1; j < std::min(child + 4, size); ++j)
                if (distance[j] < distance[best]) best = j;
            if (distance[best] >= d) break;
            set(i, distance[best], node[best]);
            i = best;
        }
        set(i, d, v);
        place[top] = NONE;
        return top;
    }

    void clear() {
        while (size > 0) place[node[--size]] = NONE;
    }
};

// Dijkstra's algorithm from one origin, and its tree.
struct Tree {
    const Graph &graph;
    std::vector<double> distance, through;
    std::vector<int32_t> edge, tail, settled;  // the last edge to each node and its tail; nodes in order of distance
    Heap open;

    explicit Tree(const Graph &graph)
        : graph(graph), distance(graph.nodes), through(graph.nodes), edge(graph.nodes), tail(graph.nodes),
          open(graph.nodes) {}

    // The tree from the origin, until `wanted` nodes with demand are reached.
    void grow(const double *costs, int64_t origin, const double *demand, int64_t wanted) {
        std::fill(distance.begin(), distance.end(), std::numeric_limits<double>::infinity());
        std::fill(edge.begin(), edge.end(), NONE);
        settled.clear();
        open.clear();
        distance[origin] = 0;
        open.put(0.0, int32_t(origin));
        while (open.size > 0 && wanted > 0) {
            const int32_t node = open.pop();
            settled.push_back(node);
            wanted -= demand[node] > 0;
            for (int32_t e = graph.starts[node]; e < graph.starts[node + 1]; ++e) {
                const int32_t head = graph.heads[e];
                const double length = distance[node] + costs[e];
                if (length < distance[head]) {
                    distance[head] = length, edge[head] = e, tail[head] = node;
                    open.put(length, head);
                }
            }
        }
    }

    // Adds what passes each edge: from the farthest node on, all that arrives at a node goes on to the one before it.
    void load(const double *demand, double *loads) {
        std::copy(demand, demand + graph.nodes, through.begin());
        for (auto node = settled.rbegin(); node != settled.rend(); ++node)
            if (edge[*node] != NONE && through[*node] > 0) {
                loads[edge[*node]] += through[*node];
                through[tail[*node]] += through[*node];
            }
    }
};

}  // namespace

void all_or_nothing(const Graph &graph, const double *costs, const int64_t *origins, int64_t count,
                    const double *demand, int threads, double *loads) {
    const int pieces = int(std::min<int64_t>(count, PIECES));
    std::vector<std::vector<double>> parts(pieces);
    in_parallel(threads, pieces, [&](int piece) {
        Tree tree(graph);
        parts[piece].assign(graph.edges, 0.0);
        for (int64_t i = count * piece / pieces; i < count * (piece + 1) / pieces; ++i) {
            const double *row = demand + i * graph.nodes;
            const int64_t wanted = std::count_if(row, row + graph.nodes, [](double d) { return d > 0; });
            tree.grow(costs, origins[i], row, wanted);
            tree.load(row, parts[piece].data());
        }
    });
    std::fill(loads, loads + graph.edges, 0.0);
    for (const std::vector<double> &part : parts)
        for (int64_t e = 0; e < graph.edges; ++e) loads[e] += part[e];
}
