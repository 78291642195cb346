// The few words of Bun that its peer uses: Bun's own types would replace Node's in the rest of this package.
declare module 'bun:sqlite' {
  export class Database {
    constructor(file: string)
    run(sql: string): void
    query<Row, Parameters extends unknown[]>(
      sql: string,
    ): {
      run(...parameters: Parameters): void
      get(...parameters: Parameters): Row | null
      all(...parameters: Parameters): Row[]
    }
  }
  export class SQLiteError extends Error {
    readonly code: string
  }
}

interface BunRequest extends Request {
  readonly params: Record<string, string>
}

type BunHandler = (request: BunRequest) => Response | Promise<Response>

declare const Bun: {
  serve(options: {
    hostname: string
    port: number
    routes: Record<string, BunHandler | Record<string, BunHandler>>
  }): void
}
