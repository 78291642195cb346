import { readFileSync } from 'node:fs'

/** Returns how much memory a process has, in MiB. */
export const residentMebibytes = (pid: number) => mebibytes('VmRSS', pid)
/** Returns the most memory that a process has had at once, in MiB. */
export const peakMebibytes = (pid: number) => mebibytes('VmHWM', pid)

/** Returns the processor time that all threads of a process have taken together. */
export function processorSeconds(pid: number): number {
  const stat = read(pid, 'stat')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  // Linux counts hundredths of a second, whatever its clock does.
  return (Number(user) + Number(system)) / 100
}

const mebibytes = (figure: string, pid: number) =>
  Number(new RegExp(`^${figure}:\\s+(\\d+) kB$`, 'm').exec(read(pid, 'status'))?.[1] ?? 0) / 1024

/** What Linux says of a process; nothing, where it has just ended or the system is another. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
