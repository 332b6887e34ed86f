package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pack writes the kernel that transposes weights into a panel, by tiles of eight
// outputs by four inputs. One class has it for all: it is bound by its shuffles
// and stores, which wider registers do not speed up.
func (c class) pack() {
	c.text("pack", "panel, w, scale *float32, in, inputs int)",
		"scales and transposes 8 outputs of inputs inputs, a positive multiple of 4.",
		"",
		"	for o := range 8 {",
		"		for k := range inputs {",
		"			panel[k*32+o] = w[o*in+k] * scale[k]",
		"		}",
		"	}",
	)
	pointer := func(name string) Register { return Load(Param(name), GP64()) }
	panel, w, scale, stride, left := pointer("panel"), pointer("w"), pointer("scale"), pointer("in"), pointer("inputs")
	w4, stride3 := GP64(), GP64()
	SHLQ(Imm(2), stride)
	LEAQ(Mem{Base: w, Index: stride, Scale: 4}, w4)
	LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)

	Label("tile")
	factors := YMM()
	VBROADCASTF128(Mem{Base: scale}, factors)
	// r[i] holds four inputs of output i, then of output i+4.
	var r [4]VecVirtual
	for i := range r {
		low, high := Mem{Base: w}, Mem{Base: w4}
		if i > 0 {
			low.Index, low.Scale = stride, uint8(i)
		}
		if i == 3 {
			low.Index, low.Scale = stride3, 1
		}
		high.Index, high.Scale = low.Index, low.Scale
		r[i] = YMM()
		VMOVUPS(low, r[i].AsX())
		VINSERTF128(Imm(1), high, r[i], r[i])
		VMULPS(factors, r[i], r[i])
	}
	// Transpose the two 4 x 4 blocks side by side.
	t := [4]VecVirtual{YMM(), YMM(), YMM(), YMM()}
	VUNPCKLPS(r[1], r[0], t[0])
	VUNPCKHPS(r[1], r[0], t[1])
	VUNPCKLPS(r[3], r[2], t[2])
	VUNPCKHPS(r[3], r[2], t[3])
	for k := range 4 {
		line := YMM()
		if k%2 == 0 {
			VUNPCKLPD(t[2+k/2], t[k/2], line)
		} else {
			VUNPCKHPD(t[2+k/2], t[k/2], line)
		}
		VMOVUPS(line, Mem{Base: panel, Disp: k * panelBytes})
	}
	for _, p := range []Register{w, w4, scale} {
		ADDQ(I32(16), p)
	}
	ADDQ(I32(4*panelBytes), panel)
	SUBQ(I32(4), left)
	JNZ(LabelRef("tile"))
	VZEROUPPER()
	RET()
}
