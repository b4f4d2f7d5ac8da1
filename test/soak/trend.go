package main

import (
	"math"
	"slices"
)

// sure is how far from chance a trend must be to count, in standard deviations of
// the Mann-Kendall statistic: one series of 9,000 that do not grow is that far.
const sure = 3.7

// trend returns the growth of a series from its beginning to its end, and whether it is
// significant. The growth is the median of the slopes between all pairs (Theil and Sen),
// which is robust against outliers. It is significant if more pairs rise than expected by
// chance (Mann and Kendall).
func trend(series []float64) (growth float64, certain bool) {
	n := len(series)
	var slopes []float64
	rising := 0
	ties := map[float64]int{}
	for i, a := range series {
		ties[a]++
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (series[j]-a)/float64(j-i))
			switch {
			case series[j] > a:
				rising++
			case series[j] < a:
				rising--
			}
		}
	}
	if len(slopes) == 0 {
		return 0, false
	}
	variance := pairs(n)
	for _, equal := range ties {
		variance -= pairs(equal)
	}
	return median(slopes) * float64(n-1), variance > 0 && float64(rising-1)/math.Sqrt(variance/18) > sure
}

func pairs(n int) float64 { return float64(n) * float64(n-1) * float64(2*n+5) }

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// grows reports whether a series of the quantity grows by more than it may.
func (q quantity) grows(series []float64) (growth float64, bad bool) {
	growth, certain := trend(series)
	return growth, certain && growth > max(q.slack, q.share*median(series))
}

// quantile returns the smallest value that the given share of all does not exceed.
func quantile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}
