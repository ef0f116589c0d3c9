package main

import (
	"strconv"
	"strings"

	"motorpool/telematics"
)

// Floors have topics of their own, so that the service need not hear what is not meant for it.
const (
	serviceRoot = "motorpool/v1/"
	floorRoot   = "bench/floor/"
	fairRoot    = "bench/fair/"
)

// serialPrefix begins the serial of each unit.
const serialPrefix = "356938"

// vehicleOf is the vehicle that a unit is in; 0: none.
func vehicleOf(u telematics.Unit) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(string(u), serialPrefix))
	return n
}

// unitIn is the unit that a topic below a root names.
func unitIn(topic, root string) telematics.Unit {
	serial, _, _ := strings.Cut(strings.TrimPrefix(topic, root), "/")
	return telematics.Unit(serial)
}

func hyphened(root string) string { return strings.ReplaceAll(strings.Trim(root, "/"), "/", "-") }
