package train

// Streams of random numbers. Each purpose has its own, so that one more draw for one purpose does
// not change the others. The low bytes name the purpose. The number of a chunk may be in the high
// ones.
const (
	streamSplit = iota + 1
	streamWeights
	streamFeatures
	streamOrder
	streamNegatives
	streamEncoder
	streamDecoder
	streamSample
	streamNewcomers
	streamWalks
	streamSpectrum
)

// mix returns a seed that differs for each step of a run: the finaliser of SplitMix64.
func mix(seed, step uint64) uint64 {
	x := seed + (step+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
