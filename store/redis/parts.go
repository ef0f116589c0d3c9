package redis

// A key that belongs to no vehicle is divided among the parts of a cluster; other servers have one
// part.

// Parts returns the key of each part.
func (db *DB) Parts(key string) []string {
	keys := make([]string, len(db.parts))
	for i, part := range db.parts {
		keys[i] = key + part
	}
	return keys
}

// Part returns the index of the part that has the keys of a hash tag.
func (db *DB) Part(tag string) int {
	if len(db.parts) == 1 {
		return 0
	}
	return partOf(tag)
}
