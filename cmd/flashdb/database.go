package main

import "github.com/flashdb/flashdb/control"

// A command asks a database the same way whether this process has it open or another one: see
// package control.
type (
	database   = *control.Client
	collection = *control.Collection
)
