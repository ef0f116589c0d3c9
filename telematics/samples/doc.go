// Package samples thins the reports of units to a history of moderate size: for each vehicle one
// sample in each [Driving] interval while it moves, and in each [Resting] interval while it stands;
// and one when it begins or ceases to move, locks or unlocks, at most once in a Driving interval:
// the last one of several is sampled with the next report after it.
//
// Intervals are aligned to the clock, so all instances agree on them, and a sample is identified by
// its vehicle and the beginning of its interval; that of a change begins with its second. A late
// report belongs to the interval in which it was made.
package samples

import "time"

// Driving is the interval of a vehicle that moves. In 15 s a car in a city, at 30 km/h, moves
// 125 m, about a block: a track of such points follows its streets. Half: twice the disk; double: a
// track cuts corners.
const Driving = 15 * time.Second

// Resting is the interval of a vehicle that stands. Then only the 12 V battery changes, in hours,
// and the charge, about 1 % a minute at a fast charger. A chart of a day with 300 points shows no
// more. It is a multiple of Driving. Half: twice the disk; double: charges look like steps.
const Resting = 5 * time.Minute

// MaxBuffered is how many samples may wait in memory, at about 150 bytes each: those of 100,000
// vehicles for five minutes, or of 10,000 for an hour. Half: a shorter failure of Postgres leaves
// gaps.
const MaxBuffered = 1 << 17
