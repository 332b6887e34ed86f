package train

// A batch holds its pairs in groups: a link, then its negatives. Loss and gradient are means over
// links, and a link's negatives together weigh as much as the link, as in OGB's examples.

// lossGroup returns the loss of one group of logits, of which that of the link is first, and writes
// its gradient. Both are multiplied by weight.
func (k LossKind) lossGroup(grad, logit []float32, weight float64) float64 {
	share := weight / float64(max(1, len(logit)-1))
	if k == PLNLP {
		return pairwiseGroup(grad, logit, share)
	}
	if k == Softmax {
		copy(grad[1:], logit[1:])
		loss, slope := softmaxGroup(grad[1:], logit[0], weight)
		grad[0] = slope
		return loss
	}
	value, slope := softplus(-float64(logit[0]))
	grad[0] = float32(-slope * weight)
	loss := value * weight
	for i, x := range logit[1:] {
		value, slope := softplus(float64(x))
		grad[1+i] = float32(slope * share)
		loss += value * share
	}
	return loss
}

// pairwiseGroup is the squared hinge of the differences between a link and each of its negatives
// (PLNLP, eq. 5).
func pairwiseGroup(grad, logit []float32, share float64) float64 {
	var loss, sum float64
	for i, x := range logit[1:] {
		short := 1 - (float64(logit[0]) - float64(x))
		loss += short * short * share
		grad[1+i] = float32(2 * short * share)
		sum -= 2 * short * share
	}
	grad[0] = float32(sum)
	return loss
}
