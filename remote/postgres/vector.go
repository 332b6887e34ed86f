package postgres

import (
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/flashdb/flashdb/remote"
)

// vectors encodes []float32 in the binary format of pgvector, which keeps every bit: the number of
// dimensions and a zero, two bytes each, and then the values, all big-endian.
type vectors struct{}

// headerBytes is the length of what comes before the values.
const headerBytes = 4

// appendVector appends the binary format of v.
func appendVector(dst []byte, v []float32) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(v)))
	dst = append(dst, 0, 0)
	for _, x := range v {
		dst = binary.BigEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// parseVector returns the vector whose binary format is src.
func parseVector(src []byte) ([]float32, error) {
	if len(src) < headerBytes || len(src) != headerBytes+4*int(binary.BigEndian.Uint16(src)) || src[2] != 0 || src[3] != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not a vector of pgvector", remote.ErrForeign, len(src))
	}
	v := make([]float32, (len(src)-headerBytes)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.BigEndian.Uint32(src[headerBytes+4*i:]))
	}
	return v, nil
}

// FormatSupported implements pgtype.Codec.
func (vectors) FormatSupported(format int16) bool { return format == pgtype.BinaryFormatCode }

// PreferredFormat implements pgtype.Codec.
func (vectors) PreferredFormat() int16 { return pgtype.BinaryFormatCode }

// PlanEncode implements pgtype.Codec.
func (vectors) PlanEncode(_ *pgtype.Map, _ uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]float32); !ok || format != pgtype.BinaryFormatCode {
		return nil
	}
	return vectorPlan{}
}

// PlanScan implements pgtype.Codec.
func (vectors) PlanScan(_ *pgtype.Map, _ uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*[]float32); !ok || format != pgtype.BinaryFormatCode {
		return nil
	}
	return vectorPlan{}
}

// DecodeDatabaseSQLValue implements pgtype.Codec.
func (v vectors) DecodeDatabaseSQLValue(m *pgtype.Map, oid uint32, format int16, src []byte) (driver.Value, error) {
	return v.DecodeValue(m, oid, format, src)
}

// DecodeValue implements pgtype.Codec.
func (vectors) DecodeValue(_ *pgtype.Map, _ uint32, _ int16, src []byte) (any, error) {
	if src == nil {
		return nil, nil
	}
	return parseVector(src)
}

// vectorPlan encodes and scans one vector.
type vectorPlan struct{}

// Encode implements pgtype.EncodePlan.
func (vectorPlan) Encode(value any, dst []byte) ([]byte, error) {
	return appendVector(dst, value.([]float32)), nil
}

// Scan implements pgtype.ScanPlan.
func (vectorPlan) Scan(src []byte, target any) (err error) {
	*target.(*[]float32), err = parseVector(src)
	return err
}
