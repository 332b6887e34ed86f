package delta

// Slots returns the number of slots in use, dead ones included.
func Slots(t *Table) int { return t.slots }
