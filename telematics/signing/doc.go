// Package signing signs the commands of a fleet and verifies them: the fleet's keys, their rotation, and the signed message [CMD-1].
package signing
