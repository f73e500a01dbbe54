// All-or-nothing assignment: the demand of each origin over its shortest routes, many origins at once.
//
// Origins are cut into pieces whose number does not depend on the threads, and the loads of the pieces are added in
// order, so that the sums are the same on every machine.
#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>
#include "kernels.h"

namespace {

constexpr int PIECES = 32;
constexpr int32_t NONE = -1;

// Dijkstra's algorithm from one origin, and its tree.
struct Tree {
    const Graph &graph;
    std::vector<double> distance, through;
    std::vector<int32_t> edge, tail, settled;  // the last edge to each node and its tail; nodes in order of distance
    std::priority_queue<std::pair<double, int32_t>, std::vector<std::pair<double, int32_t>>, std::greater<>> open;

    explicit Tree(const Graph &graph)
        : graph(graph), distance(graph.nodes), through(graph.nodes), edge(graph.nodes), tail(graph.nodes) {}

    // The tree from the origin, until `wanted` nodes with demand are reached.
    void grow(const double *costs, int64_t origin, const double *demand, int64_t wanted) {
        std::fill(distance.begin(), distance.end(), std::numeric_limits<double>::infinity());
        std::fill(edge.begin(), edge.end(), NONE);
        settled.clear();
        open = {};
        distance[origin] = 0;
        open.emplace(0.0, int32_t(origin));
        while (!open.empty() && wanted > 0) {
            const auto [reached, node] = open.top();
            open.pop();
            if (reached > distance[node]) continue;  // a shorter route was found since
            settled.push_back(node);
            wanted -= demand[node] > 0;
            for (int32_t e = graph.starts[node]; e < graph.starts[node + 1]; ++e) {
                const int32_t head = graph.heads[e];
                const double length = reached + costs[e];
                if (length < distance[head]) {
                    distance[head] = length, edge[head] = e, tail[head] = node;
                    open.emplace(length, head);
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
