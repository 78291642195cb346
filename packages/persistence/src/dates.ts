export const milliseconds = (date: Date) => BigInt(date.getTime())
export const toDate = (milliseconds: bigint) => new Date(Number(milliseconds))
