package bytecode

import lua "github.com/yuin/gopher-lua"

// Opcodes of gopher-lua: the upper six bits of an instruction.
const (
	Move = iota
	MoveN
	LoadK
	LoadBool
	LoadNil
	GetUpval
	GetGlobal
	GetTable
	GetTableKS
	SetGlobal
	SetUpval
	SetTable
	SetTableKS
	NewTable
	Self
	Add
	Sub
	Mul
	Div
	Mod
	Pow
	Unm
	Not
	Len
	Concat
	Jmp
	Eq
	Lt
	Le
	Test
	TestSet
	Call
	TailCall
	Return
	ForLoop
	ForPrep
	TForLoop
	SetList
	Close
	Closure
	Vararg
	Nop
)

// RK is the bit of an operand that makes it the index of a constant.
const RK = 1 << 8

const maxSBx = 1<<18/2 - 1

// The largest operands.
const (
	MaxA = 1<<8 - 1
	MaxC = 1<<9 - 1
)

// A and the like return the operands of an instruction: SBx is a signed distance.
func A(inst uint32) int   { return int(inst>>18) & 0xff }
func B(inst uint32) int   { return int(inst & 0x1ff) }
func C(inst uint32) int   { return int(inst>>9) & 0x1ff }
func Bx(inst uint32) int  { return int(inst & 0x3ffff) }
func SBx(inst uint32) int { return Bx(inst) - maxSBx }

// WithC returns an instruction with another operand C.
func WithC(inst uint32, c int) uint32 { return inst&^(MaxC<<9) | uint32(c)<<9 }

// ValueName returns what the source calls a register before the instruction at pc: as getobjname of ldebug.c.
func ValueName(fn *lua.LFunction, pc, reg int) (kind, name string) {
	for {
		if name := localName(fn.Proto, pc, reg); name != "" && name[0] != '(' {
			return "local", name
		}
		inst, at, ok := lastWriter(fn.Proto, pc, reg)
		if !ok {
			return "", ""
		}
		constant := func(i int) string {
			if i&RK != 0 {
				if s, ok := fn.Proto.Constants[i&^RK].(lua.LString); ok {
					return string(s)
				}
			}
			return "?"
		}
		switch inst >> 26 {
		case GetGlobal:
			return "global", constant(Bx(inst) | RK)
		case Move, MoveN:
			if B(inst) >= A(inst) {
				return "", ""
			}
			pc, reg = at, B(inst)
		case GetTable, GetTableKS:
			return "field", constant(C(inst))
		case GetUpval:
			if i := B(inst); i < len(fn.Proto.DbgUpvalues) {
				return "upvalue", fn.Proto.DbgUpvalues[i]
			}
			return "upvalue", "?"
		case Self:
			return "method", constant(C(inst))
		default:
			return "", ""
		}
	}
}

// localName returns the name of the local variable that a register holds before the instruction at pc.
func localName(p *lua.FunctionProto, pc, reg int) string {
	for _, l := range p.DbgLocals {
		if l.StartPc <= pc && pc <= l.EndPc {
			if reg--; reg < 0 {
				return l.Name
			}
		}
	}
	return ""
}

// lastWriter returns the last instruction before pc that gives a register its value.
func lastWriter(p *lua.FunctionProto, pc, reg int) (inst uint32, at int, ok bool) {
	for i := 0; i < pc && i < len(p.Code); i++ {
		c := p.Code[i]
		a, writes := A(c), false
		switch op := c >> 26; op {
		case Jmp:
			if to := i + 1 + SBx(c); to > i && to <= pc {
				i = to - 1
			}
		case LoadNil:
			writes = a <= reg && reg <= B(c)
		case Call, TailCall:
			writes = reg >= a
		case TForLoop:
			writes = reg >= a+3
		case Self:
			writes = reg == a || reg == a+1
		case ForLoop, ForPrep:
			writes = reg >= a && reg <= a+3
		case SetList:
			if C(c) == 0 {
				i++
			}
		case Vararg:
			writes = reg >= a
		case Closure:
			writes = reg == a
			inst, at, ok = pick(writes, c, i, inst, at, ok)
			i += int(p.FunctionPrototypes[Bx(c)].NumUpvalues)
			continue
		case SetGlobal, SetUpval, SetTable, SetTableKS, Eq, Lt, Le, Test, Return, Close, Nop:
		default:
			writes = a == reg
		}
		inst, at, ok = pick(writes, c, i, inst, at, ok)
	}
	return inst, at, ok
}

func pick(writes bool, c uint32, i int, inst uint32, at int, ok bool) (uint32, int, bool) {
	if writes {
		return c, i, true
	}
	return inst, at, ok
}
