package onnx

import "math"

// input reads a ValueInfoProto: a name and, in a TypeProto, the type and the shape of a tensor.
func input(b []byte) (in Input, err error) {
	err = fields(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&in.Name)
		case 2:
			return inside(f, func(f field) error {
				if f.num != 1 { // a sequence, map or optional
					in.Type = -1
					return nil
				}
				return inside(f, in.tensorType)
			})
		}
		return nil
	})
	return in, err
}

// inside calls fn for every field of the message that a field holds.
func inside(f field, fn func(f field) error) error {
	b, err := f.message()
	if err != nil {
		return err
	}
	return fields(b, fn)
}

func (in *Input) tensorType(f field) error {
	switch f.num {
	case 1:
		var v int64
		err := f.integer(&v)
		in.Type = Type(v)
		return err
	case 2:
		in.Shape = []int{}
		return inside(f, in.dimension)
	}
	return nil
}

// dimension reads a number, or the name of a free one.
func (in *Input) dimension(f field) error {
	if f.num != 1 {
		return nil
	}
	if len(in.Shape) == maxRank {
		return errRank
	}
	size := -1
	err := inside(f, func(f field) error {
		if f.num != 1 {
			return nil
		}
		var v int64
		err := f.integer(&v)
		if v > 0 && v <= math.MaxInt32 {
			size = int(v)
		}
		return err
	})
	in.Shape = append(in.Shape, size)
	return err
}
