/** As libraries do that bring their own: what async functions return is then no instance of it. */
globalThis.Promise = class extends Promise<unknown> {} as PromiseConstructor
