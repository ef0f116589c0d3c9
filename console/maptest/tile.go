package maptest

import (
	"encoding/binary"
	"maps"
	"slices"
)

// extent is how many units a tile has from side to side.
const extent = 4096

// Layer is a layer of a tile.
type Layer struct {
	Name     string
	Features []Feature
}

// Feature is something that is drawn.
type Feature struct {
	Shape      Shape
	Points     []Point // of a polygon: clockwise, as it is seen
	Properties map[string]string
}

// Point is a place in a tile: from its upper left corner, in units of 1/4096 of its side.
type Point struct{ X, Y int32 }

// Shape is what the points of a feature are.
type Shape uint64

// The shapes, as vector tiles number them.
const (
	Dot Shape = iota + 1
	Line
	Polygon
)

// encode returns the tile as Mapbox Vector Tile 2.1, which is a message of Protocol Buffers
// (https://github.com/mapbox/vector-tile-spec/tree/master/2.1).
func (t Tile) encode() (tile []byte) {
	for _, l := range t.Layers {
		tile = appendBytes(tile, 3, l.encode())
	}
	return tile
}

func (l Layer) encode() (layer []byte) {
	layer = appendVarint(nil, 15, 2) // version
	layer = appendBytes(layer, 1, []byte(l.Name))
	var keys, values []string
	index := func(known *[]string, text string) uint64 {
		at := slices.Index(*known, text)
		if at < 0 {
			*known, at = append(*known, text), len(*known)
		}
		return uint64(at)
	}
	for _, f := range l.Features {
		var tags []byte
		for _, key := range slices.Sorted(maps.Keys(f.Properties)) {
			tags = binary.AppendUvarint(tags, index(&keys, key))
			tags = binary.AppendUvarint(tags, index(&values, f.Properties[key]))
		}
		feature := appendBytes(nil, 2, tags)
		feature = appendVarint(feature, 3, uint64(f.Shape))
		layer = appendBytes(layer, 2, appendBytes(feature, 4, f.geometry()))
	}
	for _, key := range keys {
		layer = appendBytes(layer, 3, []byte(key))
	}
	for _, value := range values {
		layer = appendBytes(layer, 4, appendBytes(nil, 1, []byte(value)))
	}
	return appendVarint(layer, 5, extent)
}

// geometry moves to the first point, draws lines to the others, and closes polygons.
func (f Feature) geometry() []byte {
	const moveTo, lineTo, closePath = 1, 2, 7
	commands := []uint64{moveTo | 1<<3}
	var last Point
	for i, p := range f.Points {
		if i == 1 {
			commands = append(commands, lineTo|uint64(len(f.Points)-1)<<3)
		}
		commands = append(commands, zigzag(p.X-last.X), zigzag(p.Y-last.Y))
		last = p
	}
	if f.Shape == Polygon {
		commands = append(commands, closePath|1<<3)
	}
	var packed []byte
	for _, command := range commands {
		packed = binary.AppendUvarint(packed, command)
	}
	return packed
}

func zigzag(n int32) uint64 { return uint64(uint32(n<<1) ^ uint32(n>>31)) }

func appendVarint(message []byte, field, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(message, field<<3), value)
}

func appendBytes(message []byte, field uint64, value []byte) []byte {
	message = binary.AppendUvarint(message, field<<3|2)
	return append(binary.AppendUvarint(message, uint64(len(value))), value...)
}
