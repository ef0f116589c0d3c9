package places

import (
	"math"

	"motorpool/telematics"
)

// known finds the address of the place nearest to a position. It is a grid of cubes
// around the globe, each as long as an address reaches, so that neither the poles nor the
// date line are anything special.
type known map[cube][]telematics.Address

type cube struct{ x, y, z int32 }

func cubeOf(p telematics.Position) cube {
	x, y, z := p.Cartesian()
	at := func(metres float64) int32 { return int32(math.Floor(metres / telematics.MovedBy)) }
	return cube{at(x), at(y), at(z)}
}

func (k known) add(a telematics.Address) {
	at := cubeOf(a.Position)
	k[at] = append(k[at], a)
}

// nearest returns what is known of the place within reach that is nearest; of two that
// are equally near, the later one.
func (k known) nearest(p telematics.Position) (telematics.Address, bool) {
	var nearest telematics.Address
	reach, found := float64(telematics.MovedBy), false
	at := cubeOf(p)
	for x := at.x - 1; x <= at.x+1; x++ {
		for y := at.y - 1; y <= at.y+1; y++ {
			for z := at.z - 1; z <= at.z+1; z++ {
				for _, a := range k[cube{x, y, z}] {
					if d := p.Metres(a.Position); d < reach || d == reach && a.ID > nearest.ID {
						nearest, reach, found = a, d, true
					}
				}
			}
		}
	}
	// Having moved by MovedBy is having moved away.
	return nearest, found && reach < telematics.MovedBy
}
