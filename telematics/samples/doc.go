// Package samples thins what units report to a history that is worth its disk: of each vehicle a
// sample in each [Driving] interval while it moves, and in each [Resting] interval while it stands.
//
// Intervals are aligned to the clock, so all instances agree on them, and a sample is identified by
// its vehicle and the beginning of its interval. Reports that come late are sampled in the interval
// in which they were made.
package samples

import "time"

// Driving is the interval of a vehicle that moves, and of a change of its lock or its ignition. In
// 15 s a car in a city, at 30 km/h, moves 125 m, about a block: a track of such points follows its
// streets. Half: twice the disk; double: a track cuts corners.
const Driving = 15 * time.Second

// Resting is the interval of a vehicle that stands. What changes then are a 12 V battery, in hours,
// and a charge, about 1 % a minute at a fast charger. A chart of a day with 300 points shows no
// more. It is a multiple of Driving. Half: twice the disk; double: charges look like steps.
const Resting = 5 * time.Minute

// MaxBuffered is how many samples wait in memory, at some 150 bytes: those of 100,000 vehicles
// during five minutes, and of 10,000 during an hour. Half: a shorter failure of Postgres leaves
// gaps.
const MaxBuffered = 1 << 17
