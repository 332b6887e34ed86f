package attr

// A Cut is a place between values: before a value and all that follow, or after it. The zero Cut
// stands for either end of all values.
type Cut struct {
	Value
	After bool
}

// A Range is the values of one kind between two cuts. The zero Range is all values.
type Range struct{ From, To Cut }

// Point is the range of one value.
func Point(v Value) Range { return Range{Cut{v, false}, Cut{v, true}} }

// Holds reports whether a value of the kind of the range is in it.
func (r Range) Holds(v Value) bool {
	if r.From.kind != 0 {
		if c := Compare(v, r.From.Value); c < 0 || (c == 0 && r.From.After) {
			return false
		}
	}
	if r.To.kind != 0 {
		if c := Compare(v, r.To.Value); c > 0 || (c == 0 && !r.To.After) {
			return false
		}
	}
	return true
}
