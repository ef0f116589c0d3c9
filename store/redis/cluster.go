package redis

import (
	"strconv"

	"github.com/redis/go-redis/v9"
)

// A Redis Cluster divides 16,384 slots among its masters, mostly as a few contiguous ranges. A part
// is one of 32 such ranges: round trips, and keys that belong to no vehicle, are divided by part,
// so that an unavailable master delays only the vehicles of its slots.
const (
	clusterSlots = 16384
	clusterParts = 32
)

func (db *DB) isCluster() bool {
	_, cluster := db.Client.(*redis.ClusterClient)
	return cluster
}

// slotOf returns the slot of a key that consists of its hash tag: CRC-16/XMODEM, as the cluster
// specification has it.
func slotOf(tag string) int {
	var crc uint16
	for _, b := range []byte(tag) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % clusterSlots
}

// partOf returns the part of a cluster that has the keys of a hash tag.
func partOf(tag string) int { return slotOf(tag) * clusterParts / clusterSlots }

// partTags returns a hash tag for each part of a cluster.
func partTags() [clusterParts]string {
	var tags [clusterParts]string
	for i, missing := 0, clusterParts; missing > 0; i++ {
		tag := strconv.Itoa(i)
		if part := partOf(tag); tags[part] == "" {
			tags[part] = tag
			missing--
		}
	}
	return tags
}
