package train

// A row of ComplEx holds the real parts of half as many complex numbers, and then the imaginary
// ones. The logit of a triple is Re(<source, relation, conj(target)>) (Trouillon et al., ICML
// 2016); of a pair in reverse, whose source is the tail, the relation is conjugated.

// forwardComplex returns the logit of one pair.
func forwardComplex(u, v, relation []float32, reverse bool) float32 {
	half := len(u) / 2
	sign := float32(1)
	if reverse {
		sign = -1
	}
	ur, ui, vr, vi, rr, ri := u[:half], u[half:], v[:half], v[half:], relation[:half], relation[half:]
	var sum float32
	for k := range ur {
		c, d := rr[k], sign*ri[k]
		sum += (ur[k]*c-ui[k]*d)*vr[k] + (ur[k]*d+ui[k]*c)*vi[k]
	}
	return sum
}

// backwardComplex writes g times the gradients of source and target side by side to dst, and adds
// that of the relation to dr.
func backwardComplex(dst, dr []float32, g float32, u, v, relation []float32, reverse bool) {
	d := len(u)
	half := d / 2
	sign := float32(1)
	if reverse {
		sign = -1
	}
	for k := range half {
		a, b, e, f := u[k], u[half+k], v[k], v[half+k]
		re, im := relation[k], sign*relation[half+k]
		dst[k] = g * (re*e + im*f)
		dst[half+k] = g * (re*f - im*e)
		dst[d+k] = g * (a*re - b*im)
		dst[d+half+k] = g * (a*im + b*re)
		dr[k] += g * (a*e + b*f)
		dr[half+k] += sign * g * (a*f - b*e)
	}
}

// queryComplex writes the vector whose inner product with the target is the logit.
func queryComplex(dst, u, relation []float32, reverse bool) {
	half := len(u) / 2
	sign := float32(1)
	if reverse {
		sign = -1
	}
	for k := range half {
		re, im := relation[k], sign*relation[half+k]
		dst[k] = u[k]*re - u[half+k]*im
		dst[half+k] = u[k]*im + u[half+k]*re
	}
}

// backwardQueryComplex writes the gradient of the source to dst, and adds that of the relation to
// dr, for the gradient (e, f) of the query.
func backwardQueryComplex(dst, dr, slope, u, relation []float32, reverse bool) {
	half := len(u) / 2
	sign := float32(1)
	if reverse {
		sign = -1
	}
	for k := range half {
		a, b, e, f := u[k], u[half+k], slope[k], slope[half+k]
		re, im := relation[k], sign*relation[half+k]
		dst[k] = re*e + im*f
		dst[half+k] = re*f - im*e
		dr[k] += a*e + b*f
		dr[half+k] += sign * (a*f - b*e)
	}
}
