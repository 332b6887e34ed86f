package browse

import "math"

// A plane is where a sample of rows varies most: its mean, and the two directions of the greatest
// variance.
type plane struct {
	mean  []float64
	axes  [2][]float64
	share float64 // of the sample's variance that lies in the plane
}

// sweeps bounds the power iteration. A map needs no digits, only directions.
const sweeps = 40

// principal finds the plane of rows by power iteration: the second direction is kept at right
// angles to the first. Rows that do not vary give directions of zero.
func principal(rows [][]float32, dim int) plane {
	p := plane{mean: make([]float64, dim)}
	for _, row := range rows {
		for i, x := range row {
			p.mean[i] += float64(x) / float64(len(rows))
		}
	}
	total := 0.0
	for _, row := range rows {
		for i, x := range row {
			d := float64(x) - p.mean[i]
			total += d * d
		}
	}
	held := 0.0
	for a := range p.axes {
		axis := make([]float64, dim)
		for i := range axis { // any start will do that is not at right angles to the axis sought
			axis[i] = math.Cos(float64(i+1) * float64(a+2))
		}
		variance := 0.0
		for range sweeps {
			next := p.spread(rows, axis)
			if a == 1 {
				away(next, p.axes[0])
			}
			if variance = norm(next); !(variance > 1e-12*total) || math.IsInf(variance, 0) {
				clear(next)
				axis, variance = next, 0
				break
			}
			for i := range next {
				next[i] /= variance
			}
			axis = next
		}
		p.axes[a] = axis
		held += variance
	}
	if total > 0 {
		p.share = held / total
	}
	return p
}

// spread multiplies an axis by the scatter matrix of the rows.
func (p plane) spread(rows [][]float32, axis []float64) []float64 {
	out := make([]float64, len(axis))
	for _, row := range rows {
		along := 0.0
		for i, x := range row {
			along += (float64(x) - p.mean[i]) * axis[i]
		}
		for i, x := range row {
			out[i] += along * (float64(x) - p.mean[i])
		}
	}
	return out
}

// away takes out of v what lies along a unit vector.
func away(v, unit []float64) {
	along := 0.0
	for i := range v {
		along += v[i] * unit[i]
	}
	for i := range v {
		v[i] -= along * unit[i]
	}
}

func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}

// place returns where a row lies in the plane.
func (p plane) place(row []float32) (x, y float64) {
	for i, v := range row {
		d := float64(v) - p.mean[i]
		x += d * p.axes[0][i]
		y += d * p.axes[1][i]
	}
	return x, y
}
