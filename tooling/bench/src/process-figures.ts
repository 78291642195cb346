import { readFileSync } from 'node:fs'

/** Returns the memory of a process in MiB. */
export const residentMebibytes = (pid: number) => mebibytes('VmRSS', pid)
/** Returns the peak memory of a process in MiB. */
export const peakMebibytes = (pid: number) => mebibytes('VmHWM', pid)

/** Returns the processor time of all threads of a process. */
export function processorSeconds(pid: number): number {
  const stat = read(pid, 'stat')
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  // Linux counts hundredths of a second, whatever its clock rate.
  return (Number(user ?? 0) + Number(system ?? 0)) / 100
}

const mebibytes = (figure: string, pid: number) =>
  Number(new RegExp(`^${figure}:\\s+(\\d+) kB$`, 'm').exec(read(pid, 'status'))?.[1] ?? 0) / 1024

/** Returns an empty text for a process that has ended, and on systems without /proc. */
function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
